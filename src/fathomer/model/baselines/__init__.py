"""Comparison models: TF-IDF, fastText, a BiLSTM, the S-LSTM and a Transformer."""
