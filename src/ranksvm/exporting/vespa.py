"""Rank profiles for Vespa: a model, or the weights of retrievers for hybrid search.

If a model scales features per query, its expression runs in the global phase, which sees all reranked hits of the
query; otherwise it runs in the first phase.
"""

import math
import re

import numpy as np

from ranksvm.exceptions import OptionError
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.text import IDENTIFIER, check_identifier, exact
from ranksvm.exporting.trees import Leaf, Tree, tree_of

__all__ = ["VESPA", "VESPA_HYBRID"]

# What a rank feature looks like: bm25(title), attribute(age), fieldMatch(title).completeness, query(x), firstPhase, ...
_ARGUMENT = r"[A-Za-z0-9_@.$-]+(?:\([A-Za-z0-9_@.$, -]*\))?"
_FEATURE = re.compile(rf"[A-Za-z_@][A-Za-z0-9_@$]*(?:\({_ARGUMENT}(?:\s*,\s*{_ARGUMENT})*\))?(?:\.[A-Za-z0-9_@.]+)?")


def write(request: Request) -> bytes:
    """The rank profile.

    Parameters
    ----------
    request : Request
        What to write; names that are words become ``attribute(NAME)``.

    Returns
    -------
    bytes
        A schema's ``rank-profile``, for a separate file next to the schema.
    """
    if request.additive is not None and request.query_scaling is not None:
        raise OptionError(
            "Vespa normalizes hits for sums only, not for the steps of an additive model: use another scaler."
        )
    features = {int(column): _feature(request.names[column]) for column in request.used_columns()}
    body = (_first_phase if request.query_scaling is None else _global_phase)(request, features)
    lines = [*_head(request, features), f"rank-profile {request.name} inherits default {{", *body, "}", ""]
    return "\n".join(lines).encode()


def _head(request: Request, features: dict[int, str]) -> list[str]:
    lines = [
        f"# {request.scoring.model} as a rank profile of Vespa, written by ranksvm.",
        f"# Install: put this file into the application package, as schemas/{request.store}/{request.name}.profile:",
        "#   vespa deploy      or, in the folder of the application package,",
        "#   zip -r - . | curl -H 'Content-Type: application/zip' --data-binary @- "
        "http://localhost:19071/application/v2/tenant/default/prepareandactivate",
        f"# Query: ranking.profile={request.name}",
    ]
    if request.query_scaling is not None:
        lines += [
            "# Features are normalized over the hits of the global phase: rerank-count has to cover the documents of a "
            "query.",
            "# Scores differ from the model's by a constant of the query: half the weights of the features that are "
            "constant in it.",
        ]
    lines.append("# Self-test: three documents" + (" of one query." if request.query_scaling is not None else "."))
    for x, score in zip(request.test.X, request.test.scores, strict=True):
        values = ", ".join(f"{feature} = {exact(x[j])}" for j, feature in features.items() if x[j])
        lines.append(f"#   {values or 'all features 0'} -> {exact(_tested(request, score))}")
    return lines


def _tested(request: Request, score: float) -> float:
    """The score that Vespa gives: it takes one half, not 0, for a feature that is the same for all hits."""
    if request.query_scaling is None:
        return float(score)
    constant = np.ptp(request.test.X, axis=0) == 0.0
    return float(score + 0.5 * request.coef[constant].sum())


def _first_phase(request: Request, features: dict[int, str]) -> list[str]:
    if request.additive is not None:
        return _phase(_additive(request, features))
    affine = request.affine()
    terms = []
    for column, feature in features.items():
        terms.append((request.coef[column], _scaled(feature, affine.shift[column], affine.scale[column])))
    return _phase(_sum(terms, 12))


def _scaled(feature: str, shift: float, scale: float) -> str:
    """The expression ``(feature - shift) / scale``."""
    moved = feature if shift == 0.0 else f"({feature} {'-' if shift > 0.0 else '+'} {exact(abs(shift))})"
    return moved if scale == 1.0 else f"{moved} / {exact(scale)}"


def _phase(lines: list[str]) -> list[str]:
    """The first phase of a profile, with the lines of an expression."""
    return ["    first-phase {", "        expression {", *lines, "        }", "    }"]


def _additive(request: Request, features: dict[int, str]) -> list[str]:
    """The lines of an expression that adds up the linear part and the trees."""
    function = request.unscaled()
    terms = []
    for column in np.flatnonzero(function.coef):
        feature = features[int(column)]
        value = f"if (isNan({feature}) == 1, 0.0, {feature})" if function.missing[column] else feature
        terms.append((function.coef[column], value))
    lines = _sum(terms, 12)
    parts = [_if(tree_of(table), features) for table in function.tables]
    if function.intercept != 0.0:
        parts.append(exact(function.intercept))
    return lines + [f"            {'+ ' if number or lines else ''}{part}" for number, part in enumerate(parts)]


def _if(tree: Tree, features: dict[int, str]) -> str:
    """A tree, in the form to which Vespa converts trees of XGBoost: comparisons with missing values are false."""
    if isinstance(tree, Leaf):
        return exact(tree.value)
    feature, cut = features[tree.column], exact(tree.cut)
    below = f"!({feature} >= {cut})" if tree.missing else f"{feature} < {cut}"
    return f"if ({below}, {_if(tree.below, features)}, {_if(tree.above, features)})"


def _global_phase(request: Request, features: dict[int, str]) -> list[str]:
    terms = [(request.coef[column], f"normalize_linear({feature})") for column, feature in features.items()]
    return [
        "    # computed where the documents are",
        "    match-features {",
        *(f"        {feature}" for feature in features.values()),
        "    }",
        "    global-phase {",
        "        expression {",
        *_sum(terms, 12),
        "        }",
        "        rerank-count: 1000",
        "    }",
    ]


def _sum(terms: list[tuple[float, str]], indent: int) -> list[str]:
    lines = []
    for number, (weight, factor) in enumerate(terms):
        sign = "-" if weight < 0 else ("+" if number else "")
        lines.append(" " * indent + f"{sign} {exact(abs(weight))} * {factor}".strip())
    return lines


def _feature(name: str) -> str:
    """The rank feature of a name (a single word names an attribute); OptionError if there is none."""
    if IDENTIFIER.fullmatch(name):
        return f"attribute({name})"
    if _FEATURE.fullmatch(name):
        return name
    raise OptionError(
        f"{name!r} is no rank feature of Vespa: map it to one, such as bm25(title), attribute(age) or "
        "fieldMatch(title).completeness (names=..., or --names FILE)."
    )


def write_hybrid(request: Request) -> bytes:
    """A rank profile whose first phase is a sum with weights that a query may replace.

    Parameters
    ----------
    request : Request
        What to write; names that are words become ``attribute(NAME)``.

    Returns
    -------
    bytes
        A schema's ``rank-profile``, for a separate file next to the schema.
    """
    columns = request.used_columns()
    features = [_feature(request.names[column]) for column in columns]
    inputs, affine = _inputs([request.names[column] for column in columns]), request.affine()
    terms: list[str] = []
    for column, feature, name in zip(columns, features, inputs, strict=True):
        value = _scaled(feature, affine.shift[column], affine.scale[column])
        terms.append(f"{' ' * 12}{'+ ' if terms else ''}query({name}) * {value}")
    lines = [
        f"# The weights of a {request.scoring.model} as inputs of a rank profile of Vespa, written by ranksvm.",
        f"# Install: put this file into the application package, as schemas/{request.store}/{request.name}.profile:",
        "#   vespa deploy",
        f"# Query: ranking.profile={request.name}, and input.query({inputs[0]})=... for another weight",
        "# Self-test: three documents.",
    ]
    for x, score in zip(request.test.X, request.test.scores, strict=True):
        values = (
            f"{feature} = {exact(x[j])}"
            for j, feature in zip(columns, features, strict=True)
            if x[j] and not math.isnan(x[j])  # a feature of a document that does not match is 0
        )
        lines.append(f"#   {', '.join(values) or 'all features 0'} -> {exact(score)}")
    lines += [
        f"rank-profile {request.name} inherits default {{",
        "    inputs {",
        *(f"        query({name}) double: {exact(request.coef[j])}" for j, name in zip(columns, inputs, strict=True)),
        "    }",
        *_phase(terms),
        "}",
        "",
    ]
    return "\n".join(lines).encode()


def _inputs(names: list[str]) -> list[str]:
    """A unique name for the input of each feature."""
    found: list[str] = []
    for name in names:
        word = "weight_" + re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        number = 2
        unique = word
        while unique in found:
            unique, number = f"{word}_{number}", number + 1
        found.append(unique)
    return found


VESPA = Target(
    "vespa",
    ".profile",
    write,
    query_methods=frozenset({"min_max"}),
    no_query_scaler="Vespa normalizes hits by smallest and largest value only (normalize_linear): use query-minmax",
    store="SCHEMA",
    check_name=lambda name: check_identifier(name, "Vespa"),
)
VESPA_HYBRID = Target(
    "vespa-hybrid",
    ".profile",
    write_hybrid,
    query_methods=frozenset({("elasticsearch", "none")}),
    no_query_scaler="its first phase scores one document at a time",
    additive=False,
    store="SCHEMA",
    check_name=lambda name: check_identifier(name, "Vespa"),
)
