"""SQL: a view of the documents with their scores; window functions compute per-query scalers."""

import math
import re

from ranksvm.exceptions import OptionError
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.tables import LOWEST, Table
from ranksvm.exporting.text import NO_RETRIEVERS, exact
from ranksvm.exporting.trees import Leaf, Tree, tree_of

__all__ = ["SQL"]

# Maximum number of terms in one pair of parentheses: parsers limit the depth of an expression (SQLite to 1,000).
GROUP = 100

# A part of a qualified name: in double quotes, or without dots.
_PART = r'"(?:[^"]|"")+"|[^".][^.]*'


def write(request: Request) -> bytes:
    """The SQL file: the view, a query that runs its formula on the self-test, and a query that tests rows of the view.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        Statements that can be run again, for engines with the quoted identifiers of the standard (PostgreSQL, SQLite,
        DuckDB, Snowflake; MySQL in the mode ANSI_QUOTES).
    """
    columns = [int(column) for column in request.used_columns()]
    table, view = _qualified(request.table), _qualified(request.name)
    if table == view:
        raise OptionError(f"the view and the table are both called {request.table!r}: give another name.")
    _check_columns(request, columns)
    by_query = request.query_scaling is not None
    lines = [
        f'-- {request.scoring.model} as SQL, written by ranksvm: the view {view} adds a column "score".',
        f"-- Install: psql DATABASE -1 -f {request.file}    sqlite3 DATABASE < {request.file}    duckdb DATABASE < "
        f"{request.file}",
        _null_comment(request),
        *(
            ["-- Features are scaled by query: filter the rows of the view, not the rows of the table."]
            if by_query
            else []
        ),
        f"DROP VIEW IF EXISTS {view};",
        "",
        f"CREATE VIEW {view} AS",
        f"{_select(request, columns, table, '*')};",
        "",
        "-- Self-test of the formula: score and expected agree.",
        _self_test(request, columns),
        "",
        "-- Self-test of the view: no row differs from the formula, and none lacks a score.",
        _test_of_view(request, columns, table, view),
    ]
    return ("\n".join(lines) + "\n").encode()


def _check_columns(request: Request, columns: list[int]) -> None:
    """Raise OptionError if two columns have the same name in a database that ignores case in names."""
    named: dict[bytes, str] = {}
    for name in [request.names[column] for column in columns]:
        if name.lower() == request.query_column.lower():
            raise OptionError(f"{name!r} is the column of query ids and a feature: rename the feature (names=...).")
        if name.lower() == "score":
            raise OptionError(
                "a feature is called 'score', like the column of scores of the view: rename it (names=...)."
            )
        if (first := named.setdefault(name.encode().lower(), name)) != name:  # of letters in ASCII
            raise OptionError(
                f"SQLite, DuckDB and MySQL take {first!r} and {name!r} for one column: rename one (names=..., or "
                "--names)."
            )


def _select(request: Request, columns: list[int], table: str, what: str) -> str:
    """The query that scores the rows of a table."""
    if request.query_scaling is None:
        terms = _static_terms(request, columns) if request.additive is None else _additive_terms(request)
        return f'SELECT {what},{_sum(terms)} AS "score" FROM {table} AS "rows"'
    window = f' WINDOW "per_query" AS (PARTITION BY {_column(request.query_column)})'
    names = [_column(request.names[column]) for column in columns]
    if request.query_scaling.method == "min_max":
        values, source = [_min_max(name) for name in names], f'{table} AS "rows"'
    else:
        values, source = _standard(request, columns, names, table, window)
    if request.additive is None:
        terms = [(request.coef[j], value) for j, value in zip(columns, values, strict=True)]
        return f'SELECT {what},{_sum(terms)} AS "score" FROM {source}{window}'
    scaled = ",\n    ".join(f"{value} AS {_scaled(j)}" for j, value in zip(columns, values, strict=True))
    inner = f'(SELECT "rows".*,\n    {scaled}\n  FROM {source}{window}) AS "scaled rows"'
    return f'SELECT {what},{_sum(_additive_terms(request))} AS "score" FROM {inner}'


def _null_comment(request: Request) -> str:
    if request.query_scaling is not None:
        return "-- A feature that is NULL counts as 0 after scaling: COALESCE it in the table if that is wrong."
    if request.additive is not None and request.additive.missing.any():
        return "-- NULL is a missing value; in a feature that had none in the training data it makes the score NULL."
    return (
        "-- A feature that is NULL makes the score NULL: COALESCE it in the table, to 0 if that is what absence means."
    )


def _additive_terms(request: Request) -> list[tuple[float, str]]:
    """The linear part and the trees, computed from the table or, if columns are scaled by query, from a subquery."""
    if request.query_scaling is None:
        function, names = request.unscaled(), [_column(name) for name in request.names]
    else:
        assert request.additive is not None
        function, names = request.additive, [_scaled(j) for j in range(request.scoring.n_features)]
    terms = []
    for j in function.coef.nonzero()[0]:
        terms.append((function.coef[j], f"COALESCE({names[j]}, 0e0)" if function.missing[j] else names[j]))
    terms += [(1.0, _cases(table, names)) for table in function.tables]
    return [*terms, (function.intercept, "1e0")] if function.intercept != 0.0 else terms


def _cases(table: Table, names: list[str]) -> str:
    """A tree of CASE expressions."""
    text = _case(tree_of(table), names)
    for axis in table.axes:
        if not axis.missing:
            text = f"CASE WHEN {names[axis.feature]} IS NOT NULL THEN {text} END"
    return text


def _case(tree: Tree, names: list[str]) -> str:
    if isinstance(tree, Leaf):
        return _number(tree.value)
    name = names[tree.column]
    reached = f"{name} IS NOT NULL" if tree.cut == LOWEST else f"{name} >= {_number(tree.cut)}"
    return f"CASE WHEN {reached} THEN {_case(tree.above, names)} ELSE {_case(tree.below, names)} END"


def _scaled(column: int) -> str:
    return f'"scaled column {column}"'


def _static_terms(request: Request, columns: list[int]) -> list[tuple[float, str]]:
    affine, terms = request.affine(), []
    for column in columns:
        term, shift, scale = _column(request.names[column]), affine.shift[column], affine.scale[column]
        if shift != 0.0:
            term = f"({term} - {_number(shift)})" if shift > 0.0 else f"({term} + {_number(-shift)})"
        terms.append((request.coef[column], term if scale == 1.0 else f"{term} / {_number(scale)}"))
    return terms


def _min_max(name: str) -> str:
    low, high = (f'{function}({name}) OVER "per_query"' for function in ("MIN", "MAX"))
    # 0 if the feature is constant in the query; 1e0 prevents arithmetic of integers and of float32
    return f"COALESCE((1e0 * {name} - {low}) / NULLIF(1e0 * {high} - {low}, 0), 0e0)"


def _standard(request: Request, columns: list[int], names: list[str], table: str, window: str) -> tuple[list[str], str]:
    """The scaled features, and the subquery that computes deviations for them: window functions cannot be nested.

    A feature that is constant in the query is found by its smallest and largest value, since the mean of equal numbers
    may differ from them by round-off.
    """
    scaling = request.query_scaling
    assert scaling is not None
    inner, values = [], []
    for column, name in zip(columns, names, strict=True):
        low, high = (f'{function}({name}) OVER "per_query"' for function in ("MIN", "MAX"))
        deviation = f'"deviation of column {column}"'
        inner.append(
            f'CASE WHEN {low} = {high} THEN 0e0 ELSE 1e0 * {name} - AVG({name}) OVER "per_query" END AS {deviation}'
        )
        value = deviation if scaling.with_mean else name
        if scaling.with_std:
            spread = f'NULLIF(SQRT(AVG({deviation} * {deviation}) OVER "per_query"), 0)'
            value = f"COALESCE({value} / {spread}, {'0e0' if scaling.with_mean else name})"
        values.append(value)
    deviations = ",\n    ".join(inner)
    source = f'(SELECT "rows".*,\n    {deviations}\n  FROM {table} AS "rows"{window}) AS "rows"'
    return values, source


def _self_test(request: Request, columns: list[int]) -> str:
    names = [_quoted(request.names[column]) for column in columns]
    rows = [
        f"    SELECT {', '.join(['1', str(number), _number(score), *(_number(x[j]) for j in columns)])}"
        for number, (x, score) in enumerate(zip(request.test.X, request.test.scores.tolist(), strict=True), 1)
    ]
    header = ", ".join([_quoted(request.query_column), '"test document"', '"test expected"', *names])
    values = " UNION ALL\n".join(rows)  # VALUES has another form in MySQL
    query = _select(request, columns, _quoted("test_rows"), '"test document", "test expected"')
    return f'WITH "test_rows"({header}) AS (\n{values})\n{query}\nORDER BY "test document";'


def _test_of_view(request: Request, columns: list[int], table: str, view: str) -> str:
    """A query that counts the rows of the view whose score is wrong or NULL.

    It tests the rows of one query id if features are scaled by query, else 1,000 rows.
    """
    part, named = "LIMIT 1000", [_quoted(request.names[column]) for column in columns]
    if request.query_scaling is not None:
        query = _quoted(request.query_column)
        part, named = f"WHERE {query} = (SELECT MIN({query}) FROM {table})", [query, *named]
    # a list of columns, because the view also has the columns of the subqueries that scale features
    return (
        f'WITH "tested rows" AS (SELECT {", ".join(named)}, "score" AS "score of the view" FROM {view} {part})\n'
        'SELECT COUNT(*) AS "rows", COUNT(*) - COUNT("score of the view") AS "without score",\n'
        '  COUNT(CASE WHEN ABS("score of the view" - "score") > 1e-9 * (1e0 + ABS("score")) THEN 1 END) '
        'AS "different"\n'
        f'FROM ({_select(request, columns, _quoted("tested rows"), _quoted("score of the view"))}) AS "compared";'
    )


def _sum(terms: list[tuple[float, str]]) -> str:
    """A sum, in groups: a chain of many terms would be too deep for some parsers."""
    words = [f"{'- ' if weight < 0 else '+ '}{_number(abs(weight))} * {term}" for weight, term in terms]
    groups = [words[start : start + GROUP] for start in range(0, len(words), GROUP)]
    sums = ["\n    ".join([group[0].removeprefix("+ "), *group[1:]]) for group in groups]
    if len(sums) == 1:
        return f"\n    {sums[0]}"
    return "\n    " + "\n    + ".join(f"({part})" for part in sums)


def _number(value: float) -> str:
    """A literal with an exponent, which is a floating-point number in every dialect, not a decimal one."""
    text = exact(value)
    if not math.isfinite(value):
        raise OptionError(f"{text} cannot be written in SQL.")
    return text if "e" in text else f"{text}e0"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _column(name: str) -> str:
    """A column of the table. SQLite may read a name in quotes as text if there is no such column, but not this one."""
    return f'"rows".{_quoted(name)}'


def _qualified(name: str) -> str:
    """A name of a table or view, which may begin with the name of its schema and a dot."""
    if not re.fullmatch(rf"(?:{_PART})(?:\.(?:{_PART}))*", name, re.DOTALL):
        raise OptionError(
            f"{name!r} cannot name a table or view in SQL: write NAME or SCHEMA.NAME, and put a name that has a dot in "
            "double quotes."
        )
    parts = re.findall(_PART, name, re.DOTALL)
    return ".".join(part if part.startswith('"') else _quoted(part) for part in parts)


SQL = Target("sql", ".sql", write, query_methods=frozenset({"min_max", "standard"}), no_query_scaler=NO_RETRIEVERS)
