"""From strings to batches of word ids: tokenizer, vocabulary and pretrained vectors."""
