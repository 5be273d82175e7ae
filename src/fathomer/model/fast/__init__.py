"""The inference engine: the same function as the plain model, computed faster."""
