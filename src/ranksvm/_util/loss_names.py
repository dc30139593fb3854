"""Names of the losses; the help of the commands needs this module, so it imports nothing."""

__all__ = ["LOSSES"]

# the default first
LOSSES = ("squared_hinge", "hinge", "huber", "logistic")
