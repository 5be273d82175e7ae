"""From strings to known words: tokenizer, vocabulary and pretrained vectors."""
