"""The rows of one part of the data, as arrays that a worker has validated, and the queries of these rows."""

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_sparse
from ranksvm._util.types import Features, PathLike
from ranksvm.data import ComparablePairs, Queries, frames
from ranksvm.data.censoring import checked_event
from ranksvm.data.design_matrix import stored_bytes
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.data.numeric_column import checked_weights
from ranksvm.data.pairs import PairWeights
from ranksvm.data.queries import id_array
from ranksvm.data.validation import check_not_infinite
from ranksvm.estimators.base.inputs import features_and_labels
from ranksvm.estimators.rank_svm import RankSVMCore  # without scikit-learn, which takes a new worker seconds to import
from ranksvm.exceptions import DataError, ParseError
from ranksvm.terms.parts.part import Part

if TYPE_CHECKING:
    import pandas as pd

    # The rows of X in one part.
    Block: TypeAlias = Features | pd.DataFrame

__all__ = ["Columns", "Report", "Rows", "part_of", "read_rows", "rows_of", "together"]

# Names of the arguments of ``fit`` with one value for each row: three that determine weights, and ``event``, which
# tells whether the label, a time, was observed or is censored.
WEIGHTS = ("sample_weight", "query_weight", "propensity", "event")
# Key in `Rows.weights` of each row's number in the whole data, stored only if the user gives a list of pairs.
ROW = "row"


class Columns(NamedTuple):
    """Number and names of features, and other properties that all parts of the data must have.

    Attributes
    ----------
    n_features : int or None
        Number of features; None for text, whose lines do not state it.
    names : ndarray of str, or None
        Their names, if X is a DataFrame.
    qid : str or None
        The column of X that holds the query ids.
    missing : bool
        Whether values may be missing (NaN).
    """

    n_features: int | None
    names: np.ndarray | None = None
    qid: str | None = None
    missing: bool = False


class Report(NamedTuple):
    """A part's report to the client about its rows.

    Attributes
    ----------
    queries : ndarray of uint64, shape (n_queries,)
        A hash of the content of each query id, in order of first appearance.
    sizes : ndarray of int64, shape (n_queries,)
        Number of rows of each query.
    row_bytes : float
        Bytes of a row.
    n_features : int
        Number of features.
    largest_label : float
        The largest label; minus infinity without rows.
    names : tuple of str, or None
        Names of the features, if a file has them.
    text_ids : bool
        Whether the query ids are text, not numbers.
    zero_based : bool or None
        Whether the feature ids of a text file start at 0; None if the part is no text file.
    """

    queries: np.ndarray
    sizes: np.ndarray
    row_bytes: float
    n_features: int
    largest_label: float
    names: tuple[str, ...] | None
    text_ids: bool
    zero_based: bool | None


@dataclass(eq=False)
class Rows:
    """The rows of one part of the data.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        Features.
    y : ndarray of float64, shape (n_rows,)
        Labels.
    qid : ndarray, shape (n_rows,)
        Query ids.
    weights : dict of str to ndarray
        The arrays of `WEIGHTS` that were passed, by name, and `ROW` if the user gives a list of pairs.
    names : tuple of str, optional
        Names of the features, if a file has them.
    zero_based : bool, optional
        Whether the feature ids of a text file start at 0.
    """

    X: Features
    y: np.ndarray
    qid: np.ndarray
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    names: tuple[str, ...] | None = None
    zero_based: bool | None = None
    _queries: Queries | None = field(default=None, init=False, repr=False)

    def __sizeof__(self) -> int:
        vectors = sum(values.nbytes for values in (self.y, *self.weights.values()))
        ids = self.qid.nbytes if self.qid.dtype != object else 60 * len(self.qid)
        return object.__sizeof__(self) + stored_bytes(self.X) + vectors + ids

    def __len__(self) -> int:
        return len(self.y)

    def __reduce__(self):
        return Rows, (self.X, self.y, self.qid, self.weights, self.names, self.zero_based)

    @property
    def queries(self) -> Queries:
        """Which rows belong to each query."""
        if self._queries is None:
            self._queries = Queries.from_qid(self.qid, len(self.y))
        return self._queries

    def report(self) -> Report:
        """The report for the client."""
        n_rows, n_features = self.X.shape
        weight = self.weights.get("sample_weight")
        largest = float((self.y if weight is None else self.y[weight > 0.0]).max(initial=-np.inf))
        size = sys.getsizeof(self) / max(1, n_rows)
        hashes, text_ids = hashes_of(self.queries.ids), self.qid.dtype.kind not in "biuf"
        return Report(hashes, self.queries.sizes, size, n_features, largest, self.names, text_ids, self.zero_based)

    def taken(self, rows: np.ndarray) -> "Rows":
        """The rows with these row numbers."""
        weights = {name: values[rows] for name, values in self.weights.items()}
        return Rows(self.X[rows], self.y[rows], self.qid[rows], weights, self.names)

    def of_queries(self, hashes: np.ndarray, without: bool = False) -> "Rows":
        """The rows of queries with these hashes; if ``without``, the rows of all other queries."""
        chosen = np.isin(hashes_of(self.queries.ids), hashes, invert=without)
        return self.taken(np.flatnonzero(chosen[self.queries.numbers()]))

    def name_of(self, query: int) -> object:
        """The id of the query with the hash ``query``."""
        place = np.flatnonzero(hashes_of(self.queries.ids) == np.uint64(query))
        return self.queries.keys[int(place[0])]

    def with_text_ids(self) -> "Rows":
        """The same rows, with query ids that are text: equal numbers of any type become the same text."""
        ids = self.qid
        if ids.dtype.kind == "f":
            ids = np.array([int(each) if each.is_integer() else each for each in ids.tolist()], dtype=object)
        return replace(self, qid=ids.astype(np.str_))

    def with_features(self, n_features: int) -> "Rows":
        """The same rows with features added that are 0: text files omit the last features of a line if they are 0."""
        missing = n_features - self.X.shape[1]
        if missing <= 0:
            return self
        if is_sparse(self.X):
            from scipy import sparse

            whole = self.X.data, self.X.indices, self.X.indptr
            return replace(self, X=sparse.csr_array(whole, shape=(self.X.shape[0], n_features)))
        return replace(self, X=np.pad(self.X, ((0, 0), (0, missing))))


def rows_of(
    X: "Block",
    y: ArrayLike,
    qid: ArrayLike | None,
    weights: Mapping[str, ArrayLike | None],
    columns: Columns,
    part: str,
) -> Rows:
    """The rows of one part of the data, after validation; errors name the part and the row.

    Parameters
    ----------
    X, y, qid : array-like or DataFrame
        The part's features, labels and query ids.
    weights : dict
        The part's weights by name.
    columns : Columns
        Properties that the part must have.
    part : str
        Name of the part in error messages.

    Returns
    -------
    Rows
        The rows.
    """
    try:
        if columns.qid is not None:
            X, qid, _ = frames.split_qid(X, columns.qid)
        if qid is None:
            raise DataError("there are no query ids.")
        features, labels = _validated(X, y, columns)
        checked = {
            name: _checked_column(name, values, len(labels)) for name, values in weights.items() if values is not None
        }
        ids = id_array(qid)
        rows = Rows(features, labels, ids[:, 0] if ids.ndim == 2 and ids.shape[1] == 1 else ids, checked)
        _ = rows.queries
        if "propensity" in checked:
            # checks only the range of each value: the rows of a query may still be in several parts
            PairWeights(propensity=checked["propensity"]).factors(rows.queries)
        return rows
    except ParseError:  # its message names the file
        raise
    except DataError as error:
        raise DataError(f"{part}: {error}") from None


def _validated(X: "Block", y: ArrayLike, columns: Columns) -> tuple[Features, np.ndarray]:
    """Features and labels of a part, which may have no row."""
    if columns.names is not None and X.shape[0] == 0:
        return np.zeros((0, len(columns.names))), np.zeros(0)
    if X.shape[0] == 0 and len(np.asarray(y)) == 0:
        return (X.astype(np.float64) if is_sparse(X) else np.zeros(X.shape)), np.zeros(0)
    model = RankSVMCore()
    model.n_features_in_ = X.shape[1] if columns.n_features is None else columns.n_features
    if columns.names is not None:
        model.feature_names_in_ = columns.names
    try:
        found, labels = features_and_labels(model, X, y, n_threads=1, reset=False, finite=not columns.missing)
        if isinstance(found, DeviceFeatures):
            found = found.on_host()
        if columns.missing:
            check_not_infinite(found, None if columns.names is None else columns.names.tolist())
        return found, labels
    except DataError as error:
        if text := _first_text(X):
            raise DataError(f"{text} ({error})") from None
        raise


def _checked_column(name: str, values: ArrayLike, n_rows: int) -> np.ndarray:
    """Validate an array with one value for each row: row numbers, weights, or whether each time was observed."""
    if name == ROW:
        return np.asarray(values)
    return checked_event(values, n_rows) if name == "event" else checked_weights(name, values, n_rows, "X")


def _first_text(X: "Block") -> str | None:
    """Describe the first value of an array of objects or strings that is not a number."""
    values = np.asarray(X) if not is_sparse(X) else np.zeros((0, 0))
    if values.dtype.kind not in "OUS":
        return None
    for row, column in np.ndindex(values.shape):
        try:
            float(values[row, column])
        except (TypeError, ValueError):
            return f"{values[row, column]!r} in row {row}, column {column}, is not a number"
    return None


def read_rows(
    path: PathLike, label: str, qid: str, part: str, columns: Columns | None, missing: bool, only_features: bool = False
) -> Rows:
    """The rows of one file, which a worker reads: text, CSV, Parquet or a cache.

    Parameters
    ----------
    path : str
        A path that the workers see, or an address of fsspec.
    label, qid : str
        The columns of a table that hold labels and query ids.
    part : str
        Name of the file in error messages.
    columns : Columns or None
        The features of a model: the rows get these features. None: all features of the file.
    missing : bool
        Whether values may be missing.
    only_features : bool
        Whether only the features are needed: the file may lack labels and query ids.

    Returns
    -------
    Rows
        The rows.
    """
    from ranksvm.datasets.files import read_data

    with _local(path) as local:
        try:
            data = read_data(local, label=label, qid=qid, missing=missing, require_labels=not only_features)
        except FileNotFoundError as error:
            raise DataError(f"{part}: a worker finds no such file: {error}") from None
    if data.qid is None and not only_features:
        raise DataError(f"{part}: there are no query ids.")
    if data.categories:
        raise DataError(f"{part}: the features {', '.join(map(repr, data.categories))} hold text: encode them first.")
    X = data.X if columns is None else _matched(data.X, data.feature_names, columns, part)
    ids = np.zeros(data.n_rows) if data.qid is None else data.qid
    rows = rows_of(X, data.y, ids, {}, Columns(X.shape[1], missing=missing), part)
    rows.names = data.feature_names if columns is None else None
    rows.zero_based = data._zero_based
    return rows


def _matched(X: Features, names: tuple[str, ...] | None, columns: Columns, part: str) -> Features:
    """The features of a model: by name if both have names, else by position (text omits last features that are 0)."""
    assert columns.n_features is not None
    if names is None or columns.names is None:
        if X.shape[1] > columns.n_features:
            raise DataError(f"{part}: it has {X.shape[1]} features, but the model has {columns.n_features}.")
        return X
    wanted = columns.names.tolist()
    place = {name: column for column, name in enumerate(names)}
    if missing := [name for name in wanted if name not in place]:
        raise DataError(f"{part}: it lacks the feature {missing[0]!r} of the model.")
    return X if wanted == list(names) else X[:, [place[name] for name in wanted]]


def _local(path: PathLike) -> AbstractContextManager[str]:
    """Context with a local path to a file: a remote file is copied."""
    from contextlib import contextmanager, nullcontext

    if "://" not in str(path) or str(path).startswith("file://"):
        return nullcontext(str(path).removeprefix("file://"))

    @contextmanager
    def copied() -> Iterator[str]:
        import tempfile
        from pathlib import Path

        import fsspec

        with tempfile.TemporaryDirectory() as folder:
            system, remote = fsspec.core.url_to_fs(str(path))
            here = Path(folder, Path(remote).name)
            system.get_file(remote, str(here))
            yield str(here)

    return copied()


def together(parts: Sequence[Rows]) -> Rows:
    """Join several parts, in their order.

    Parameters
    ----------
    parts : sequence of Rows
        The parts; at least one.

    Returns
    -------
    Rows
        Their rows.
    """
    filled = [part for part in parts if len(part.y)] or list(parts[:1])
    if len(filled) == 1:
        return filled[0]
    n_features = max(part.X.shape[1] for part in filled)
    X = frames.stacked(*(part.with_features(n_features).X for part in filled))
    weights = {name: np.concatenate([part.weights[name] for part in filled]) for name in filled[0].weights}
    y, qid = np.concatenate([part.y for part in filled]), _ids([part.qid for part in filled])
    return Rows(X, y, qid, weights, filled[0].names)


def _ids(parts: list[np.ndarray]) -> np.ndarray:
    """Ids of several parts; as objects if their kinds differ, because NumPy would convert numbers to text."""
    kinds = {"n" if part.dtype.kind in "iuf" else part.dtype.kind for part in parts}
    if len(kinds) == 1:
        return np.concatenate(parts)
    return np.concatenate([part.astype(object) for part in parts])


def part_of(
    rows: Rows, selection: str, weighting: str, largest_label: float, n_features: int, in_place: bool = False
) -> Part:
    """A `Part` of the training problem made from some rows: their pairs, and X sorted as the pairs number the rows.

    Parameters
    ----------
    rows : Rows
        Whole queries.
    selection, weighting : str
        As in `ComparablePairs.from_labels`.
    largest_label : float
        The largest label of all parts.
    n_features : int
        Number of features of all parts.
    in_place : bool
        Whether the part uses X as it is, unsorted and with rows that have no pairs, instead of a sorted copy.

    Returns
    -------
    Part
        The part.
    """
    rows = rows.with_features(n_features)
    options = {"selection": selection, "weighting": weighting, "largest_label": largest_label, "may_be_empty": True}
    pairs = ComparablePairs.from_labels(rows.queries, rows.y, **options, **rows.weights)  # type: ignore[arg-type]
    if in_place or pairs.rows is None:
        return Part(rows.X, pairs, sample_weight=rows.weights.get("sample_weight"))
    return Part(rows.X[pairs.rows], pairs.renumbered())


def hashes_of(ids: np.ndarray) -> np.ndarray:
    """A 64-bit hash of each id, the same on every worker: equal numbers of any type have equal hashes.

    Parameters
    ----------
    ids : ndarray, shape (n_ids,)
        The ids.

    Returns
    -------
    ndarray of uint64, shape (n_ids,)
        The hashes. Queries with equal hashes are moved together, but remain different queries.
    """
    if ids.dtype.kind == "b":
        ids = ids.astype(np.int64)
    if ids.dtype.kind == "M":
        ids = ids.astype("datetime64[ns]").astype(np.int64)
    if ids.dtype.kind == "f" and len(ids) and np.all(np.abs(ids) < 2.0**62) and not np.any(ids % 1.0):
        ids = ids.astype(np.int64)
    if ids.dtype.kind in "iu":
        return _mixed(ids.astype(np.uint64, copy=False))
    return np.fromiter(map(_hash, ids.tolist()), dtype=np.uint64, count=len(ids))


def _mixed(values: np.ndarray) -> np.ndarray:
    """SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): consecutive numbers get unrelated hashes."""
    with np.errstate(over="ignore"):
        z = values + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _hash(value: object) -> int:
    if isinstance(value, np.generic):  # in an array of objects; its repr has the name of its type
        value = value.item()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 2.0**62):
        return int(_mixed(np.array([int(value) % 2**64], dtype=np.uint64))[0])
    content = value if isinstance(value, bytes) else repr(value).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
