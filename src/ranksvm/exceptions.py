"""The errors that ranksvm raises, and its warnings.

Each error is also a subclass of the built-in exception that a user of scikit-learn would catch. A solver that stops
early warns with scikit-learn's own ConvergenceWarning.
"""

__all__ = [
    "RankSVMError",
    "DataError",
    "ParseError",
    "NoComparablePairsError",
    "NoIntervalsError",
    "OptionError",
    "MissingDependencyError",
    "DeviceError",
    "DeviceMemoryError",
    "ModelFileError",
    "ClusterError",
    "StoreError",
    "GridEdgeWarning",
    "LikelyMistakeWarning",
    "OneQueryWarning",
    "ScaleWarning",
    "UninformativeWarning",
]


class RankSVMError(Exception):
    """Base class of every error that ranksvm raises itself.

    Examples
    --------
    >>> from ranksvm import RankSVM
    >>> from ranksvm.exceptions import RankSVMError
    >>> try:
    ...     RankSVM(C=-1.0).fit([[1.0], [2.0]], [1, 0], qid=[1, 1])
    ... except RankSVMError as error:
    ...     print(type(error).__name__)
    OptionError
    """


class DataError(RankSVMError, ValueError):
    """The data given (X, y, qid, weights, scores, a file's content) are invalid.

    Examples
    --------
    >>> from ranksvm import RankSVM
    >>> from ranksvm.exceptions import DataError
    >>> try:
    ...     RankSVM().fit([[1.0], [2.0]], [1, 0, 1], qid=[1, 1])
    ... except DataError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class ParseError(DataError):
    r"""A line of a text file is malformed.

    Attributes
    ----------
    path : str
        The file.
    line : int
        Line number, from 1.
    column : int
        Column (byte) number in the line, from 1.
    reason : str
        What was found and what was expected.

    Examples
    --------
    >>> import io
    >>> from ranksvm import read_letor
    >>> from ranksvm.exceptions import ParseError
    >>> try:
    ...     read_letor(io.BytesIO(b"1 qid:7 1:0.5\n0 qid:7 1:half\n"))
    ... except ParseError as error:
    ...     print(error.line, error.column)
    2 11
    """

    def __init__(self, path: str, line: int, column: int, reason: str):
        super().__init__(path, line, column, reason)
        self.path, self.line, self.column, self.reason = path, line, column, reason

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.reason}"


class NoComparablePairsError(DataError):
    """No query has two documents with different labels, so there are no pairs to learn from.

    Examples
    --------
    >>> from ranksvm import RankSVM
    >>> from ranksvm.exceptions import NoComparablePairsError
    >>> try:
    ...     RankSVM().fit([[1.0], [2.0]], [1, 1], qid=[1, 1])
    ... except NoComparablePairsError as error:
    ...     print("no pairs")
    no pairs
    """


class NoIntervalsError(DataError):
    """Confidence intervals of weights could not be trusted, or computing them would need too much memory.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis
    >>> from ranksvm.exceptions import NoIntervalsError
    >>> try:
    ...     analysis.weight_intervals(RankSVM(), [[1.0], [2.0], [3.0]], [0, 1, 0], [1, 1, 2])
    ... except NoIntervalsError as error:
    ...     print("1 query has pairs" in str(error))
    True
    """


class OptionError(RankSVMError, ValueError):
    """An option has an invalid value.

    Examples
    --------
    >>> from ranksvm import RankSVM
    >>> from ranksvm.exceptions import OptionError
    >>> try:
    ...     RankSVM(loss="exponential").fit([[1.0], [2.0]], [1, 0], qid=[1, 1])
    ... except OptionError as error:
    ...     print("squared_hinge" in str(error))
    True
    """


class MissingDependencyError(RankSVMError, ImportError):
    """An optional package is needed; the message names the ``pip install`` line.

    Examples
    --------
    >>> from ranksvm.exceptions import MissingDependencyError
    >>> issubclass(MissingDependencyError, ImportError)
    True
    """


class DeviceError(RankSVMError, RuntimeError):
    """A device that was asked for is not there, is out of memory, or has failed.

    Examples
    --------
    >>> from ranksvm.exceptions import DeviceError
    >>> issubclass(DeviceError, RuntimeError)
    True
    """


class DeviceMemoryError(DeviceError, MemoryError):
    """A device has too little free memory; the message says how much was asked for and how much is free.

    Examples
    --------
    >>> from ranksvm.exceptions import DeviceError, DeviceMemoryError
    >>> issubclass(DeviceMemoryError, DeviceError), issubclass(DeviceMemoryError, MemoryError)
    (True, True)
    """


class ModelFileError(RankSVMError, ValueError):
    """A model file is truncated, altered, of another kind, or of a newer version.

    Examples
    --------
    >>> import os, ranksvm, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.rsvm")
    >>> with open(path, "wb") as file:
    ...     _ = file.write(b"no model")
    >>> from ranksvm.exceptions import ModelFileError
    >>> try:
    ...     ranksvm.load(path)
    ... except ModelFileError as error:
    ...     print("refused")
    refused
    """


class ClusterError(RankSVMError, RuntimeError):
    """A cluster does not answer any more, has no workers left, or has lost data that it cannot compute again.

    Examples
    --------
    >>> from ranksvm.exceptions import ClusterError
    >>> issubclass(ClusterError, RuntimeError)
    True
    """


class StoreError(RankSVMError, RuntimeError):
    """The store of a learning service is locked, full, damaged, out of reach, of another version, or not a store.

    Examples
    --------
    >>> from ranksvm.exceptions import RankSVMError, StoreError
    >>> issubclass(StoreError, RankSVMError)
    True
    """


class GridEdgeWarning(UserWarning):
    """The best value of a grid is its smallest or largest one: a better one may lie outside.

    Examples
    --------
    >>> import warnings
    >>> from ranksvm import RankSVM, make_ranking
    >>> from ranksvm.clicks import PositionBias, fit_from_clicks, simulate_clicks
    >>> from ranksvm.exceptions import GridEdgeWarning
    >>> data = make_ranking(n_queries=30, n_docs=8, n_features=3, random_state=0)
    >>> log = simulate_clicks(data, -data.X[:, 0], 3_000, n_ranks=4, random_state=0)
    >>> with warnings.catch_warnings(record=True) as shown:
    ...     warnings.simplefilter("always")
    ...     _ = fit_from_clicks(RankSVM(), data, log, PositionBias.power(4), Cs=[0.0001, 0.01])
    >>> shown[0].category.__name__
    'GridEdgeWarning'
    """


class LikelyMistakeWarning(UserWarning):
    """Arguments are valid, but probably not what was meant.

    For example: labels and scores look swapped; some query ids are numbers, and one of these numbers is also an id as
    text (1 and "1"); ``memory_limit`` is given for data that are already in memory; or C is chosen by a metric that is
    0 for every model, because all labels are negative.

    Examples
    --------
    >>> import warnings
    >>> from ranksvm import Queries
    >>> from ranksvm.exceptions import LikelyMistakeWarning
    >>> with warnings.catch_warnings(record=True) as shown:
    ...     warnings.simplefilter("always")
    ...     _ = Queries.from_qid([1, "1"])
    >>> shown[0].category.__name__
    'LikelyMistakeWarning'
    """


class OneQueryWarning(UserWarning):
    """Rows without query ids were fitted, evaluated or scaled as one query; with many rows this is a DataError.

    Examples
    --------
    >>> import warnings
    >>> from ranksvm import RankSVM
    >>> from ranksvm.exceptions import OneQueryWarning
    >>> with warnings.catch_warnings(record=True) as shown:
    ...     warnings.simplefilter("always")
    ...     _ = RankSVM().fit([[1.0], [2.0]], [1, 0])
    >>> shown[0].category.__name__
    'OneQueryWarning'
    """


class ScaleWarning(UserWarning):
    """Features have very different scales.

    Either the training data and an evaluation set differ in scale, because only one of them was scaled, or an online
    ranker has found a value above 1e15.

    Examples
    --------
    >>> import warnings
    >>> from ranksvm import RankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> other = (100.0 * data.X, data.y)
    >>> from ranksvm.exceptions import ScaleWarning
    >>> with warnings.catch_warnings(record=True) as shown:
    ...     warnings.simplefilter("always")
    ...     _ = RankSVM().fit(data.X, data.y, qid=data.qid, eval_set=other, eval_qid=data.qid)
    >>> shown[0].category.__name__
    'ScaleWarning'
    """


class UninformativeWarning(UserWarning):
    """A fit or a calibration has learned nothing: all weights, or the slope, are 0.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from ranksvm import Preferences, RankSVM
    >>> same = np.ones((4, 2))
    >>> from ranksvm.exceptions import UninformativeWarning
    >>> with warnings.catch_warnings(record=True) as shown:
    ...     warnings.simplefilter("always")
    ...     _ = RankSVM().fit(Preferences(same, same))
    >>> shown[0].category.__name__
    'UninformativeWarning'
    """
