"""From files to batches: examples, readers, the demo corpus and packed batches."""
