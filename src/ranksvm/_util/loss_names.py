"""Names of the losses, in a module that imports nothing, as the help of the commands needs it."""

__all__ = ["LOSSES"]

# the default first
LOSSES = ("squared_hinge", "hinge", "huber", "logistic")
