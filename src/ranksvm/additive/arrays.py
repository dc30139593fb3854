"""Converts an additive function to plain arrays, for model files, and back."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ranksvm.additive.bins import MAX_BINS, FeatureBins
from ranksvm.additive.function import AdditiveFunction, Interaction

__all__ = ["FunctionArrays", "arrays_of", "function_of", "joined"]


class FunctionArrays(NamedTuple):
    """The arrays of an additive function.

    Attributes
    ----------
    coef, fill : ndarray of float64, shape (n_features,)
        The weights of the linear part, and the value that it uses for missing values.
    has_missing : ndarray of int64, shape (n_features,)
        1 for a feature whose missing values have a level.
    is_categorical : ndarray of int64, shape (n_features,)
        1 for a categorical feature.
    n_cuts : ndarray of int64, shape (n_features,)
        Number of cuts of each feature, or of categories of a categorical feature.
    cuts : ndarray of float64, shape (sum of n_cuts,)
        The cuts or categories of all features, one feature after the other.
    shape_values : ndarray of float64
        The values of all levels, one feature after the other.
    interactions : ndarray of int64, shape (n_interactions, 2)
        Numbers of the features.
    n_interaction_cuts, interaction_cuts : ndarray
        As ``n_cuts`` and ``cuts``, for the levels in interactions; a feature that is in no interaction has none.
    interaction_values : ndarray of float64
        The values of all cells (combinations of two levels), one interaction after the other, row by row.
    """

    coef: np.ndarray
    fill: np.ndarray
    has_missing: np.ndarray
    is_categorical: np.ndarray
    n_cuts: np.ndarray
    cuts: np.ndarray
    shape_values: np.ndarray
    interactions: np.ndarray
    n_interaction_cuts: np.ndarray
    interaction_cuts: np.ndarray
    interaction_values: np.ndarray


def arrays_of(function: AdditiveFunction) -> FunctionArrays:
    """The arrays of a function.

    Parameters
    ----------
    function : AdditiveFunction
        The function.

    Returns
    -------
    FunctionArrays
        The arrays.
    """
    coarse: dict[int, FeatureBins] = {}
    for each in function.interactions:
        coarse[each.first], coarse[each.second] = each.first_bins, each.second_bins
    own = [_places(each) for each in function.bins]
    in_pairs = [_places(coarse[j]) if j in coarse else np.empty(0) for j in range(function.n_features)]
    return FunctionArrays(
        coef=function.coef,
        fill=function.fill,
        has_missing=np.array([int(each.missing) for each in function.bins], dtype=np.int64),
        is_categorical=np.array([int(each.categories is not None) for each in function.bins], dtype=np.int64),
        n_cuts=np.array([len(each) for each in own], dtype=np.int64),
        cuts=joined(own),
        shape_values=joined(function.shapes),
        interactions=np.array([(e.first, e.second) for e in function.interactions], dtype=np.int64).reshape(-1, 2),
        n_interaction_cuts=np.array([len(each) for each in in_pairs], dtype=np.int64),
        interaction_cuts=joined(in_pairs),
        interaction_values=joined([each.values for each in function.interactions]),
    )


def function_of(arrays: FunctionArrays) -> AdditiveFunction:
    """The function that arrays describe, which may come from a file.

    Parameters
    ----------
    arrays : FunctionArrays
        The arrays.

    Returns
    -------
    AdditiveFunction
        The function.

    Raises
    ------
    ValueError
        When the arrays do not agree with each other.
    """
    n = len(arrays.coef)
    bins = _bins(arrays, arrays.n_cuts, arrays.cuts, "cuts")
    coarse = _bins(arrays, arrays.n_interaction_cuts, arrays.interaction_cuts, "interaction_cuts")
    shapes = _split(arrays.shape_values, [each.n_levels for each in bins], "shape_values")
    pairs = [(int(a), int(b)) for a, b in arrays.interactions]
    if any(not (0 <= a < b < n) for a, b in pairs) or len(set(pairs)) < len(pairs):
        raise ValueError("interactions are not pairs of two features, each once")
    for j in {j for pair in pairs for j in pair}:
        if not np.isin(_places(coarse[j]), _places(bins[j])).all():
            raise ValueError(f"interaction_cuts of feature {j} are not among its cuts")
    if any(coarse[a].n_levels * coarse[b].n_levels > MAX_BINS + 1 for a, b in pairs):
        raise ValueError("an interaction has more cells than a code of one byte")
    sizes = [coarse[a].n_levels * coarse[b].n_levels for a, b in pairs]
    cells = _split(arrays.interaction_values, sizes, "interaction_values")
    interactions = [
        Interaction(a, b, coarse[a], coarse[b], values.reshape(coarse[a].n_levels, coarse[b].n_levels))
        for (a, b), values in zip(pairs, cells, strict=True)
    ]
    return AdditiveFunction(arrays.coef, arrays.fill, bins, shapes, interactions)


def _places(bins: FeatureBins) -> np.ndarray:
    return bins.cuts if bins.categories is None else bins.categories


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The values of arrays of any shape, one array after the other.

    Parameters
    ----------
    parts : sequence of ndarray
        The arrays.

    Returns
    -------
    ndarray of float64, shape (sum of sizes,)
        Their values.
    """
    return np.concatenate([np.empty(0), *(part.ravel() for part in parts)]).astype(np.float64)


def _split(values: np.ndarray, sizes: Sequence[int], name: str) -> list[np.ndarray]:
    if len(values) != sum(sizes):
        raise ValueError(f"{name} has {len(values)} values, not {sum(sizes)}")
    return np.split(values, np.cumsum(sizes)[:-1]) if len(sizes) else []


def _bins(arrays: FunctionArrays, counts: np.ndarray, cuts: np.ndarray, name: str) -> list[FeatureBins]:
    if (counts < 0).any() or (counts > MAX_BINS).any():
        raise ValueError(f"{name} has a feature with more levels than a code of one byte")
    found = []
    for part, missing, category in zip(
        _split(cuts, counts.tolist(), name), arrays.has_missing, arrays.is_categorical, strict=True
    ):
        if (np.diff(part) <= 0).any():
            raise ValueError(f"{name} of a feature do not ascend")
        if len(part) + int(missing) > MAX_BINS:
            raise ValueError(f"{name} has a feature with more levels than a code of one byte")
        places = (np.empty(0), bool(missing), part) if category else (part, bool(missing), None)
        found.append(FeatureBins(*places))
    return found
