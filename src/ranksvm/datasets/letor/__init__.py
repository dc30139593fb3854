"""Readers of LETOR / SVMlight text, whole or as a stream, and a writer."""
