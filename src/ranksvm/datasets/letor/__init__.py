"""LETOR / SVMlight text: read whole or as a stream, and written."""
