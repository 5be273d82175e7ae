"""Models to compare with."""
