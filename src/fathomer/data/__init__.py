"""Labelled texts: reading files, the corpora of the paper, downloads and checks."""
