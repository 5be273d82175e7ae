"""The HTTP service: limits, the batcher that owns the model, the application and its page."""
