"""The steps of a Pipeline, and whether it accepts missing values, without an import of scikit-learn."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["knowing_all_data", "steps_of", "takes_missing"]


def steps_of(model: object) -> list[Any]:
    """The steps of a Pipeline, or a single model as the only one; the last is the ranker."""
    return [step for _, step in model.steps] if hasattr(model, "steps") else [model]


def takes_missing(model: object) -> bool:
    """Whether a model accepts NaN: the first step from this package decides (scikit-learn's scalers keep NaN)."""
    return next((step._takes_missing for step in steps_of(model) if hasattr(step, "_takes_missing")), False)


@contextmanager
def knowing_all_data(model: Any, X: object) -> Iterator[None]:
    """Context for fitting an additive ranker to a part of X: features with NaN anywhere in X may have NaN."""
    if not hasattr(model, "_all_data"):
        yield
        return
    model._all_data = X
    try:
        yield
    finally:
        del model._all_data
