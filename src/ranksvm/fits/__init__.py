"""Optimisation problems: from data, a loss and a model to an objective and its solver, and records of solutions."""
