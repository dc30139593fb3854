"""Optimization problems, which combine data, a loss and a model into an objective and its solver; their results."""
