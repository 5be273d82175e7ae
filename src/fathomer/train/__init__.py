"""From labelled texts to a trained network."""
