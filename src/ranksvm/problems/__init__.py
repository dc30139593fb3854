"""From data, a loss and a model to an objective and its solver; and what a solution becomes."""
