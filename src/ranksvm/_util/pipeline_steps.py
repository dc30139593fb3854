"""The steps of a Pipeline, found without importing scikit-learn."""

from typing import Any

__all__ = ["steps_of"]


def steps_of(model: object) -> list[Any]:
    """The steps of a Pipeline, or a single model as the only one; the last is the ranker."""
    return [step for _, step in model.steps] if hasattr(model, "steps") else [model]
