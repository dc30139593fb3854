"""A module of Python that scores documents and imports nothing."""

import keyword

from ranksvm.exporting.code import Language, filled
from ranksvm.exporting.request import Request
from ranksvm.exporting.scoring import QueryScaling

__all__ = ["PYTHON"]

_FILE = '''"""$about

Install: copy this file; it needs nothing but Python. Self-test: python $file
"""

NAMES = [
$names,
]
_KNOWN = frozenset(NAMES)
$arrays
$scores

def rank(documents):
    """Numbers of the documents of a query, from 0, best first."""
    found = scores(documents)
    return sorted(range(len(found)), key=lambda number: -found[number])


def _row(document):
    if hasattr(document, "get"):
        if unknown := sorted(map(repr, set(document.keys()) - _KNOWN)):
            raise ValueError(f"the model has no feature {unknown[0]}")
        return [float(document.get(name, 0.0)) for name in NAMES]
    row = [float(value) for value in document]
    if len(row) != len(WEIGHTS):
        raise ValueError(f"a document has {len(WEIGHTS)} features, got {len(row)}")
    return row


def self_test():
    """Raise AssertionError unless three documents have the scores of the model."""
    documents = [[0.0] * len(WEIGHTS) for _ in range($n_test)]
    for number, column, value in [
$entries
    ]:
        documents[number][column] = value
    expected = [$expected]
    found = scores(documents)
    for one, other in zip(found, expected):
        assert abs(one - other) <= $tolerance, f"expected {expected}, got {found}"


if __name__ == "__main__":
    self_test()
    print("self-test passed")
'''
_STATIC = '''
def score(document):
    """Score of a document: a sequence of $n numbers, or a dict of values by name, 0 where absent, and nothing else."""
    row = _row(document)
    return sum($term)


def scores(documents):
    """Scores of documents."""
    return [score(document) for document in documents]
'''
_TERM = "weight * value for weight, value in zip(WEIGHTS, row)"
_SCALED_TERM = "weight * ((value - shift) / scale) for weight, value, shift, scale in zip(WEIGHTS, row, SHIFT, SCALE)"
_BY_QUERY = '''
def scores(documents):
    """Scores of all documents of one query, which scale their features."""
    rows = [_row(document) for document in documents]
    found = [0.0] * len(rows)
    for column, weight in enumerate(WEIGHTS):
        values = _scaled([row[column] for row in rows]) if weight else ()
        for number, value in enumerate(values):
            found[number] += weight * value
    return found
'''
_SUMS = '''
def _interval(value, first, n_cuts):
    """How many of its cuts a value reaches; a missing value (NaN) none."""
    low, high = first, first + n_cuts
    while low < high:
        middle = (low + high) // 2
        if value >= CUTS[middle]:
            low = middle + 1
        else:
            high = middle
    return low - first


def _sum(row):
    terms = zip(WEIGHTS, row, MISSING)
    found = sum(weight * value for weight, value, missing in terms if value == value or not missing)
    for t in range(0, len(TABLES), 7):
        one, first, n_cuts, other, other_first, n_other_cuts, start = TABLES[t : t + 7]
        place = _interval(row[one], first, n_cuts) * (n_other_cuts + 1)
        found += VALUES[start + place + _interval(row[other], other_first, n_other_cuts)]
    return found

'''
_ADDITIVE_STATIC = '''
def score(document):
    """Score of a document: a sequence of $n numbers, or a dict of values by name, 0 where absent, and nothing else.

    NaN is a missing value.
    """
    return _sum($row)


def scores(documents):
    """Scores of documents."""
    return [score(document) for document in documents]
'''
_SCALED_ROW = "[(value - shift) / scale for value, shift, scale in zip(_row(document), SHIFT, SCALE)]"
_ADDITIVE_BY_QUERY = '''
def scores(documents):
    """Scores of all documents of one query, which scale their features."""
    columns = [_scaled(values) for values in zip(*map(_row, documents))]
    return [_sum(row) for row in zip(*columns)]
'''
_SCALED = '''

def _scaled(values):
    """A feature of the documents of a query: $what."""
    if not values:
        return values
$body
'''
_MIN_MAX = """    low = min(values)
    spread = max(values) - low
    return [(value - low) / spread if spread > 0.0 else 0.0 for value in values]"""
_CENTERED = """    # relative to the first document, so that a constant feature is exactly 0
    centered = [value - values[0] for value in values]
    mean = sum(centered) / len(centered)
    centered = [value - mean for value in centered]"""
_DEVIATION = "    deviation = (sum(value * value for value in centered) / len(centered)) ** 0.5"


def _functions(request: Request) -> str:
    if request.query_scaling is None:
        term = _TERM if request.scaling is None else _SCALED_TERM
        return filled(_STATIC, n=request.scoring.n_features, term=term)
    return _BY_QUERY + _scaler(request.query_scaling)


def _additive_functions(request: Request) -> str:
    if request.query_scaling is None:
        row = "_row(document)" if request.scaling is None else _SCALED_ROW
        return _SUMS + filled(_ADDITIVE_STATIC, n=request.scoring.n_features, row=row)
    return _SUMS + _ADDITIVE_BY_QUERY + _scaler(request.query_scaling)


def _scaler(scaling: QueryScaling) -> str:
    """The function that scales a feature."""
    if scaling.method == "min_max":
        return filled(_SCALED, what="from 0 to 1", body=_MIN_MAX)
    lines = [_CENTERED]
    found = "centered" if scaling.with_mean else "values"
    if scaling.with_std:
        constant = "0.0" if scaling.with_mean else "value"
        lines += [_DEVIATION, f"    return [value / deviation if deviation > 0.0 else {constant} for value in {found}]"]
    else:
        lines.append(f"    return {found}")
    return filled(_SCALED, what="relative to their mean and deviation", body="\n".join(lines))


PYTHON = Language(
    title="Python",
    reserved=keyword.kwlist,
    file=_FILE,
    array="$array = [\n$numbers,\n]",
    scores=_functions,
    additive=_additive_functions,
    literal=repr,
    entry="({}, {}, {})",
    entry_indent="        ",
).target("python", ".py")
