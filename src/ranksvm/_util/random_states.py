"""Sources of random numbers from the values that ``random_state`` may have."""

import numpy as np

from ranksvm._util.checks import check, seed
from ranksvm._util.types import RandomState
from ranksvm.exceptions import OptionError

__all__ = ["generator_of", "random_numbers"]


def random_numbers(random_state: RandomState) -> np.random.RandomState:
    """The source of random numbers that ``random_state`` stands for; OptionError if it stands for none."""
    from sklearn.utils import check_random_state

    check(random_state=seed(random_state))
    return check_random_state(random_state)


def generator_of(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """NumPy's Generator that ``random_state`` stands for; OptionError if it stands for none."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        expected = "None, a whole number from 0 or a numpy.random.Generator"
        raise OptionError(f"random_state must be {expected}, got {random_state!r}.") from None
