"""The steps of a Pipeline, found without importing scikit-learn, and the missing values that they take."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["knowing_all_data", "steps_of", "takes_missing"]


def steps_of(model: object) -> list[Any]:
    """The steps of a Pipeline, or a single model as the only one; the last is the ranker."""
    return [step for _, step in model.steps] if hasattr(model, "steps") else [model]


def takes_missing(model: object) -> bool:
    """Whether a model takes NaN: its first step of this package decides (scalers of scikit-learn keep NaN)."""
    return next((step._takes_missing for step in steps_of(model) if hasattr(step, "_takes_missing")), False)


@contextmanager
def knowing_all_data(model: Any, X: object) -> Iterator[None]:
    """Context in which an additive ranker is fitted to a part of X, but all of X says which features may have NaN."""
    if not hasattr(model, "_all_data"):
        yield
        return
    model._all_data = X
    try:
        yield
    finally:
        del model._all_data
