"""Models to compare with: TF-IDF, fastText, a BiLSTM, the S-LSTM and a Transformer."""
