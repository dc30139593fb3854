"""Names of the losses: what imports nothing else may ask for, such as the help of the commands."""

__all__ = ["LOSSES"]

# the default first
LOSSES = ("squared_hinge", "hinge", "huber", "logistic")
