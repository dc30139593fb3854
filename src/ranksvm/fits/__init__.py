"""Optimization problems: data, a loss and a model become an objective and its solver; records of solutions."""
