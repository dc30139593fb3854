"""Tables with named columns, as in Parquet and CSV files: the role of each column, and its values."""

import re
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ranksvm._util.checks import check, flag, is_integer
from ranksvm._util.text import feature_labels
from ranksvm.data.frames import CONTENTS, reserved_column
from ranksvm.exceptions import DataError, MissingDependencyError, OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from ranksvm.datasets.cache.reader import CacheFile
    from ranksvm.datasets.ranking_data import RankingData

    Rows: TypeAlias = pa.Table | pa.RecordBatch
    Column: TypeAlias = pa.Array | pa.ChunkedArray

__all__ = ["Columns", "Table", "pyarrow_with", "table"]

_LABEL, _QID, _DOCID = "label", "qid", "docid"
# What features without names are called.
_NUMBERED = re.compile("f?[1-9][0-9]*")
# What to do about missing values.
_DROP = "fill or drop them first"
_DROP_OR_ACCEPT = f"{_DROP}, or accept them for an additive model (missing=True; --missing-values at the command line)"


@dataclass(frozen=True)
class Columns:
    """Names of the columns that are not features.

    Parameters
    ----------
    label : str
        Column of the labels.
    qid : str
        Column of the query ids. A column with the default name may be absent.
    docid : str
        Column of the document ids. A column with the default name may be absent.
    ignore : sequence of str
        Columns that are not read.
    require_labels : bool
        Whether a column of labels is required; if it is not, and there is none, all labels are 0.
    missing : bool
        Whether values of features may be missing: they become NaN.
    categorical : sequence of str or int, or mapping of str to list of str
        Names, or numbers from 0, of the features that may hold text; or a mapping of their names to their known texts
        (a file may lack some of these features).
    takes_categorical : bool
        Whether the function that the user called has the parameter ``categorical``, for messages.
    """

    label: str = _LABEL
    qid: str = _QID
    docid: str = _DOCID
    ignore: Sequence[str] = ()
    require_labels: bool = True
    missing: bool = False
    categorical: Sequence[str | int] | Mapping[str, Sequence[str]] | None = ()
    takes_categorical: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.ignore, str) or not all(isinstance(name, str) for name in self.ignore):
            raise OptionError(f"ignore must be a list of column names, got {self.ignore!r}.")
        check(require_labels=flag(self.require_labels), missing=flag(self.missing))
        named = [self.label, self.qid, self.docid]
        if not all(isinstance(name, str) for name in named):
            raise OptionError(f"label, qid and docid must be column names, got {named!r}.")
        if len(set(named)) < len(named):
            raise OptionError(f"label, qid and docid must be three columns, got {', '.join(map(repr, named))}.")
        if isinstance(self.categorical, Mapping):
            listed = not any(isinstance(texts, str) for texts in self.categorical.values())
        else:
            given = [] if self.categorical is None else self.categorical
            listed = isinstance(given, list | tuple | np.ndarray)
            object.__setattr__(self, "categorical", tuple(given) if listed else given)
        if not listed or not all(isinstance(each, str) or is_integer(each, 0) for each in self.categorical or ()):
            raise OptionError(
                "categorical must be a list of names or numbers of features, or texts by name, got "
                f"{self.categorical!r}."
            )

    def check_ignored(self, name: str, cached: "RankingData | CacheFile | None" = None) -> None:
        """Refuse to ignore features of a cache, or of text if ``cached`` is None: these are read whole."""
        for ignored in self.ignore:
            if cached is None:
                kind, is_feature = "text", _NUMBERED.fullmatch(ignored) is not None
            else:
                features = cached.feature_names or feature_labels(cached.n_features)
                kind, is_feature = "a cache", ignored in features or f"f{ignored}" in features
            if is_feature:
                raise OptionError(
                    f"{name} is {kind}, whose features cannot be ignored, but {ignored!r} is to be ignored (ignore, "
                    "--ignore): use a table (Parquet, CSV or TSV), or omit the option."
                )

    @property
    def text_column_advice(self) -> str:
        """What to do about a feature that holds text, for messages."""
        if isinstance(self.categorical, Mapping):
            return (
                "The training data have no text in such a column: write it as numbers, or ignore it (ignore, --ignore)."
            )
        if self.takes_categorical:
            listed = "list it (categorical, --categorical)"
        else:
            listed = "read the whole file with read_data and list it there (categorical)"
        return (
            f"If it holds categories for an additive model, {listed}; else ignore it (ignore, --ignore) or encode it "
            "as numbers."
        )


@dataclass(frozen=True)
class Table:
    """The columns of one file.

    Parameters
    ----------
    name : str
        The file, for messages.
    label, qid, docid : str or None
        Columns of labels, query ids and document ids; None if absent.
    features : list of str
        The other columns.
    missing : bool
        Whether values of features may be missing.
    texts : list of str
        The features that may hold text.
    categories : dict of str to list of str
        For each feature that holds text, the list of its texts. In X, each text of such a feature is its position in
        this list.
    missing_texts : frozenset of str
        Texts that stand for a missing value.
    """

    name: str
    label: str | None
    qid: str | None
    docid: str | None
    features: list[str]
    missing: bool = False
    texts: list[str] = field(default_factory=list)
    categories: dict[str, list[str]] = field(default_factory=dict)
    missing_texts: frozenset[str] = frozenset()

    def labels(self, pa: ModuleType, columns: "Rows", first_row: int) -> np.ndarray:
        """Labels of some rows, the first of which has the number ``first_row``."""
        if self.label is None:
            return np.zeros(len(columns))
        labels = self._numbers(pa, columns.column(self.label), self.label, first_row)
        self._refuse_rows(~np.isfinite(labels), "labels that are NaN or infinite", self.label, first_row)
        return labels

    def ids(self, pa: ModuleType, columns: "Rows", first_row: int) -> dict[str, np.ndarray | None]:
        """Query and document ids of some rows."""
        return {
            field: None if title is None else self._ids(pa, columns.column(title), title, first_row)
            for field, title in (("qid", self.qid), ("docid", self.docid))
        }

    def fill(self, pa: ModuleType, X: np.ndarray, columns: "Rows", first_row: int) -> None:
        """Copy the features of some rows into X."""
        for number, column in enumerate(self.features):
            read = self._places if column in self.texts else self._numbers
            values = read(pa, columns.column(column), column, first_row, self.missing, _DROP_OR_ACCEPT)
            with np.errstate(over="ignore"):  # an overflow is found below
                X[:, number] = values
            if values.dtype.kind == "f" and values.dtype.itemsize > X.dtype.itemsize:
                self._refuse_rows(
                    np.isinf(X[:, number]) & np.isfinite(values),
                    f"values beyond the range of {X.dtype}",
                    column,
                    first_row,
                    "read it with dtype=numpy.float64",
                )

    def with_categories(self, pa: ModuleType, parts: Iterable["Rows"], texts_by_type: Collection[str] = ()) -> "Table":
        """A copy with the categories in ``parts`` of the file: known texts first, the others in alphabetical order.

        A column counts as numeric if all of its texts are numbers, none of them is a known text, and the column is not
        one of ``texts_by_type``, whose type in the file is text.
        """
        if not self.texts:
            return self
        found: dict[str, set[str]] = {name: set() for name in self.texts}
        for part in parts:
            for name, texts in found.items():
                column = part.column(name).cast(pa.large_string())
                texts.update(text for text in column.unique().to_pylist() if text is not None)
        categories = {}
        for name, texts in found.items():
            known = self.categories.get(name, [])
            new = sorted(texts.difference(known, self.missing_texts))
            if name in texts_by_type or not texts.isdisjoint(known) or not _are_numbers(pa, new):
                categories[name] = [*known, *new]
        return replace(self, categories=categories)

    def _places(
        self, pa: ModuleType, column: "Column", title: str, first_row: int, missing: bool, instead: str
    ) -> np.ndarray:
        """The position of each text in its list of categories, or the number that the text spells; NaN if missing."""
        column = column.cast(pa.large_string())
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        encoded = column.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        if title in self.categories:
            places: dict[str, float] = dict.fromkeys(self.missing_texts, np.nan)
            places |= {text: place for place, text in enumerate(self.categories[title])}
            numbers = [places[text] for text in texts]
        else:
            texts_or_null = [None if text in self.missing_texts else text for text in texts]
            numbers = pa.array(texts_or_null, pa.string()).cast(pa.float64()).to_numpy(zero_copy_only=False).tolist()
        values = np.array([*numbers, np.nan])[encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)]
        if not missing:
            self._refuse_rows(np.isnan(values), "missing values", title, first_row, instead)
        return values

    def _numbers(
        self,
        pa: ModuleType,
        column: "Column",
        title: str,
        first_row: int,
        missing: bool = False,
        instead: str = _DROP,
    ) -> np.ndarray:
        if column.null_count and not missing:
            self._refuse_rows(np.asarray(column.is_null()), "missing values", title, first_row, instead)
        if pa.types.is_boolean(column.type) or pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
            column = column.cast(pa.float64())  # to_numpy would convert these, or their nulls, to Python objects
        values = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "biuf":
            raise DataError(f"column {title!r} of {self.name} has type {column.type}: it must be numeric.")
        return values

    def _refuse_rows(self, bad: np.ndarray, what: str, title: str, first_row: int, instead: str = _DROP) -> None:
        """Raise DataError if there are bad rows; the message has their number and the first of them.

        ``bad`` may describe a block of the rows. Then no earlier block had bad rows, and later ones are not known yet.
        """
        rows = np.flatnonzero(bad)
        if len(rows):
            raise DataError(
                f"column {title!r} of {self.name} has {what} in {len(rows)} of the first {first_row + len(bad)} rows, "
                f"the first is row {first_row + int(rows[0])} (from 0): {instead}."
            )

    def _ids(self, pa: ModuleType, column: "Column", title: str, first_row: int) -> np.ndarray:
        if column.null_count:
            self._refuse_rows(np.asarray(column.is_null()), "missing values", title, first_row)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            ids: np.ndarray = column.to_numpy()
            self._refuse_rows(ids != ids, "NaN", title, first_row)
            return ids
        if pa.types.is_nested(column.type):
            raise DataError(f"column {title!r} of {self.name} has type {column.type}: ids must be numbers or text.")
        try:
            return np.array(column.cast(pa.string()).to_pylist(), dtype=np.str_)
        except pa.ArrowInvalid:
            raise DataError(
                f"column {title!r} of {self.name} has bytes that are not text (UTF-8): ids must be numbers or text."
            ) from None


def table(name: str, names: list[str], columns: Columns, *, known_features: bool = False) -> Table:
    """Find the roles of the columns of a file from their names.

    Parameters
    ----------
    name : str
        The file.
    names : list of str
        Names of its columns.
    columns : Columns
        Which of them are not features.
    known_features : bool
        Whether the others are known to be features, whatever they are called.

    Raises
    ------
    DataError
        When a named column is missing, two columns have the same name, or a feature is named like ids, labels or an
        index.
    """
    if len(set(names)) < len(names):
        twice = next(column for column in names if names.count(column) > 1)
        raise DataError(f"{name} has two columns called {twice!r}: rename one of them.")
    for column in columns.ignore:
        if column not in names:
            raise DataError(f"{name} has no column {column!r} to ignore; its columns are {_some(names)}.")
    names = [column for column in names if column not in columns.ignore]
    columns_text = f"its columns are {_some(names)}"
    label: str | None = columns.label
    if columns.label not in names:
        if columns.require_labels or columns.label != _LABEL:
            raise DataError(
                f"{name} has no column {columns.label!r} for the labels; {columns_text}. Name the one that holds "
                "them (label; --label at the command line)."
            )
        label = None
    for option, column, usual in (("qid", columns.qid, _QID), ("docid", columns.docid, _DOCID)):
        if column not in names and column != usual:
            raise DataError(f"{name} has no column {column!r} ({option}); {columns_text}.")
    qid = columns.qid if columns.qid in names else None
    docid = columns.docid if columns.docid in names else None
    features = [column for column in names if column not in (label, qid, docid)]
    if not known_features and (reserved := reserved_column(features)):
        column, parameter = reserved
        advice = f"name it ({parameter}={column!r}; --{parameter} {column} at the command line)"
        if parameter == "index":
            advice = "write the file without it (index=False)"
        raise DataError(
            f"column {column!r} of {name} is named like {CONTENTS[parameter]}, not like a feature: {advice}, ignore it "
            "(ignore, --ignore), or rename it if it is a feature."
        )
    known = columns.categorical if isinstance(columns.categorical, Mapping) else {}
    categories = {column: list(known[column]) for column in features if column in known}
    listed = list(columns.categorical or ())
    texts = [column for number, column in enumerate(features) if column in listed or number in listed]
    return Table(name, label, qid, docid, features, columns.missing, texts, categories)


def _are_numbers(pa: ModuleType, texts: list[str]) -> bool:
    try:
        pa.array(texts, pa.string()).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def pyarrow_with(module: str, what: str) -> ModuleType:
    """The package pyarrow, with one of its modules loaded; MissingDependencyError tells how to install it."""
    try:
        import importlib

        import pyarrow

        importlib.import_module(f"pyarrow.{module}")
        if module == "csv":  # pyarrow loads this while it converts columns, and then loses Ctrl-C
            importlib.import_module("pyarrow.compute")
    except ImportError as error:
        why = "" if isinstance(error, ModuleNotFoundError) else f" (the installed one cannot be loaded: {error})"
        raise MissingDependencyError(f'{what} needs pyarrow: pip install "ranksvm[parquet]"{why}') from None
    if callable(signal.getsignal(signal.SIGTERM)):
        # The program handles signals itself, as commands do. While pyarrow reads CSV, its own handlers would lose them.
        pyarrow.enable_signal_handlers(False)
    return pyarrow


def _some(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
