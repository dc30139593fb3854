"""A linear model as plugins of Lucene's engines compute it: in float32, by a normalizer per feature, no intercept."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksvm.exceptions import OptionError
from ranksvm.exporting.request import Request
from ranksvm.exporting.scoring import Scaling
from ranksvm.exporting.text import float32_number

__all__ = ["LuceneFeature", "lucene_features", "lucene_test", "offset_of", "scale_of_scores"]

# If float32 would change the "min_max" range of a feature by more than this fraction, the feature gets a "standard"
# normalizer.
RANGE_ERROR = 1e-6
# If the largest absolute value of a feature is more than this multiple of the width of its range, the range is not
# extended to 0: float32 would have no digits left for differences.
FAR_RATIO = 1e3


@dataclass(frozen=True)
class LuceneFeature:
    """One feature of an engine: ``weight * (x - shift) / scale``, with all numbers in float32.

    Parameters
    ----------
    column : int
        Column of the model.
    name : str
        Name in the engine.
    weight : float
        The weight.
    shift, scale, high : float or None
        Parameters of the normalizer: mean and standard deviation; or for "min_max" the smallest value, the range, and
        the largest value. None without a normalizer.
    style : {"standard", "min_max"}
        Which normalizer.
    """

    column: int
    name: str
    weight: float
    shift: float | None = None
    scale: float | None = None
    high: float | None = None
    style: str = "standard"


def lucene_features(request: Request) -> list[LuceneFeature]:
    """The features that the engine has to compute; the request's notes say which are left out.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    list of LuceneFeature
        At least one.

    Raises
    ------
    OptionError
        When no feature is left, or a weight is beyond float32.
    """
    scaling = _shifted(request) if request.ranges is not None else request.scaling
    extents = _extents(request)
    found, constant = [], []
    for column in request.used_columns():
        name, weight = request.names[column], float32_number(request.coef[column])
        if not np.isfinite(weight):
            raise OptionError(f"the weight of feature {name!r} is beyond the range of float32, in which it is scored.")
        feature = _feature(int(column), name, weight, scaling, extents[column])
        if feature is None:
            constant.append(name)
        else:
            found.append(feature)
    if constant:
        request.notes.append(
            f"dropped: {', '.join(constant[:5])}{', ...' if len(constant) > 5 else ''}, constant in float32, which "
            "the engine's normalizers refuse."
        )
    if not found:
        raise OptionError("every feature is constant in float32: there is nothing to export.")
    return found


def _extents(request: Request) -> np.ndarray:
    """How far the values of each feature are apart; infinite if neither data nor the scaler tells."""
    scale = request.affine().scale
    if request.ranges is None:
        return np.where(scale == 1.0, np.inf, scale)
    low, high = request.ranges
    return np.maximum(scale, high - low)


def _feature(column: int, name: str, weight: float, scaling: Scaling | None, extent: float) -> LuceneFeature | None:
    """One feature; None if its values are equal in float32, or the engine would refuse its normalizer."""
    if scaling is None or (scaling.shift[column] == 0.0 and scaling.scale[column] == 1.0):
        return LuceneFeature(column, name, weight)
    shift, scale = float(scaling.shift[column]), float(scaling.scale[column])
    low, high, spread = float32_number(shift), float32_number(shift + scale), float32_number(scale)
    if not (np.isfinite([low, high, spread]).all() and spread > 0.0 and extent > np.spacing(np.float32(abs(low)))):
        return None
    if scaling.style == "min_max" and abs((high - low) - scale) <= RANGE_ERROR * scale:
        return LuceneFeature(column, name, weight, low, spread, high, "min_max")
    return LuceneFeature(column, name, weight, low, spread)


def offset_of(request: Request, features: list[LuceneFeature]) -> float:
    """The engine's scores minus the scores of the model.

    Parameters
    ----------
    request : Request
        What was written.
    features : list of LuceneFeature
        Its features.

    Returns
    -------
    float
        A constant, up to round-off: the shifts of the engine differ from those of the model, or are rounded to float32.
    """
    affine = request.affine()
    moved = 0.0
    for feature in features:
        engine = 0.0 if feature.shift is None else float(np.float32(feature.shift))
        moved += request.coef[feature.column] * (affine.shift[feature.column] - engine) / affine.scale[feature.column]
    return float(moved)


def scale_of_scores(request: Request, features: list[LuceneFeature]) -> str:
    """A description of the engine's scores."""
    shifted = f" plus {offset_of(request, features):.9g}" if request.ranges is not None else ""
    return f"the score of the model{shifted}, in float32"


def lucene_test(request: Request, features: list[LuceneFeature]) -> list[dict[str, Any]]:
    """The self-test, with the scores of the engine: sums over the features that it has, plus the offset.

    Parameters
    ----------
    request : Request
        What to write.
    features : list of LuceneFeature
        Its features.

    Returns
    -------
    list of dict
        Features that are not 0, and the score, of each document.
    """
    columns, affine = np.array([feature.column for feature in features]), request.affine()
    scaled = (request.test.X[:, columns] - affine.shift[columns]) / affine.scale[columns]
    scores = scaled @ request.coef[columns] + offset_of(request, features)
    return replace(request.test, scores=scores).by_name(request.names, columns)


def _shifted(request: Request) -> Scaling:
    """The scaling with the shifts that keep scores from being negative.

    A feature whose weight is positive is shifted by its smallest value, any other by its largest value, so that no term
    of the score is negative. The range of a feature is extended to 0, because engines use 0 for a feature that a
    document does not match. If the feature is so far from 0 that float32 would lose its differences, the range is not
    extended.
    """
    assert request.ranges is not None
    low, high = (np.asarray(values, dtype=np.float64) for values in request.ranges)
    far = np.maximum(np.abs(low), np.abs(high)) > FAR_RATIO * (high - low)
    far &= ((low > 0.0) | (high < 0.0)) & (high > low)
    low, high = np.where(far, low, np.minimum(low, 0.0)), np.where(far, high, np.maximum(high, 0.0))
    if far.any() and request.coef[far].any():
        named = [request.names[j] for j in np.flatnonzero(far & (request.coef != 0.0))]
        request.notes.append(
            f"a document without {', '.join(named[:5])}{', ...' if len(named) > 5 else ''} may have a negative score: "
            "the values of this feature are too far from 0 for float32."
        )
    # the next float32 below the smallest value, and above the largest
    down = np.nextafter(low.astype(np.float32), np.float32(-np.inf))
    up = np.nextafter(high.astype(np.float32), np.float32(np.inf))
    down, up = np.where(low == 0.0, 0.0, down), np.where(high == 0.0, 0.0, up)
    return Scaling(np.where(request.coef > 0.0, down, up).astype(np.float64), request.affine().scale)
