"""A description of a linear or additive model in JSON, with the names of its features, for your own programs."""

from typing import Any

import numpy as np

from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.tables import Table
from ranksvm.exporting.text import NO_RETRIEVERS, json_bytes

__all__ = ["JSON"]

_FORMULAS: dict[Any, str] = {
    None: "sum over features of weight * x",
    "static": "sum over features of weight * (x - shift) / scale",
    "min_max": "sum over features of weight * (x - min) / (max - min), 0 where max = min; min and max over the "
    "documents of the query",
    "standard": "sum over features of weight * (x - mean) / deviation; mean and deviation (of the population; 1 where "
    "a feature is constant) over the documents of the query; the mean counts as 0 if with_mean is false, and the "
    "deviation as 1 if with_std is false",
}
# Text that is appended to the formula for an additive model.
_TABLES = (
    "; plus the value of each table: an axis takes interval k of a feature if its value, scaled in the same way, "
    "reaches k of the cuts, and interval 0 if it is missing; a missing value is 0 in the sum if the feature is marked "
    "as such"
)


def write(request: Request) -> bytes:
    """The document.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        JSON.
    """
    columns = np.arange(request.scoring.n_features)
    by_query = request.query_scaling
    features: list[dict[str, Any]] = [
        {"name": name, "weight": float(weight)} for name, weight in zip(request.names, request.coef, strict=True)
    ]
    if request.query_scaling is None and request.scaling is not None:
        for feature, shift, scale in zip(features, request.scaling.shift, request.scaling.scale, strict=True):
            feature |= {"shift": float(shift), "scale": float(scale)}
    method = by_query.method if by_query is not None else ("static" if request.scaling is not None else None)
    additive = request.additive
    if additive is not None:
        for feature, missing in zip(features, additive.missing, strict=True):
            feature["missing"] = bool(missing)
    document = {
        "format": "ranksvm-linear" if additive is None else "ranksvm-additive",
        "version": 1,
        "name": request.name,
        "model": request.scoring.model,
        "install": "read this file with any JSON parser; a feature that a document lacks is 0",
        "score": _FORMULAS[method] + ("" if additive is None else _TABLES),
        "query_scaler": None
        if by_query is None
        else {"method": by_query.method, "with_mean": by_query.with_mean, "with_std": by_query.with_std},
        "features": features,
        **({} if additive is None else {"tables": [_table(table, request.names) for table in additive.tables]}),
        "test": {
            "documents_of": "one query",
            "documents": request.test.by_name(request.names, columns),
        },
    }
    return json_bytes(document)


def _table(table: Table, names: list[str]) -> dict[str, Any]:
    axes = [{"feature": names[axis.feature], "cuts": axis.cuts.tolist()} for axis in table.axes]
    return {"axes": axes, "values": table.values.tolist()}


JSON = Target(
    "json",
    ".json",
    write,
    query_methods=frozenset({"min_max", "standard"}),
    no_query_scaler=NO_RETRIEVERS,
)
