"""Fuzzers of the readers and the estimators: `run.py` runs them."""
