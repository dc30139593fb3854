"""Data terms: the loss of X w, wherever the rows are."""
