"""Values of C and gamma as text, the same in tables, logs and messages."""

import math

__all__ = ["is_power", "power"]


def is_power(value: float) -> bool:
    """Whether a value is a power of 2."""
    return math.frexp(value)[0] == 0.5


def power(value: float) -> str:
    """A value of C or gamma: as a power of 2 (other than 1) if it is one, else with four digits."""
    return f"2^{math.frexp(value)[1] - 1}" if is_power(value) and value != 1.0 else f"{value:.4g}"
