"""Embedding models of the BERT family: encoders that read a whole text at once and give one vector for it."""
