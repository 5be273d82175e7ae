"""Training: from labelled texts to a trained model."""
