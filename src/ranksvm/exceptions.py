"""The errors that ranksvm raises, and its warnings.

Each is also the built-in class that a user of scikit-learn would catch. A solver that stops early warns with
scikit-learn's own ConvergenceWarning.
"""

__all__ = [
    "RankSVMError",
    "DataError",
    "ParseError",
    "NoComparablePairsError",
    "OptionError",
    "MissingDependencyError",
    "DeviceError",
    "ModelFileError",
    "ClusterError",
    "StoreError",
    "OneQueryWarning",
    "ScaleWarning",
    "UninformativeWarning",
]


class RankSVMError(Exception):
    """Base class of every error that ranksvm raises itself."""


class DataError(RankSVMError, ValueError):
    """The data given (X, y, qid, weights, scores, a file's content) are invalid."""


class ParseError(DataError):
    """A line of a text file is malformed.

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
    """

    def __init__(self, path: str, line: int, column: int, reason: str):
        super().__init__(path, line, column, reason)
        self.path, self.line, self.column, self.reason = path, line, column, reason

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.reason}"


class NoComparablePairsError(DataError):
    """No query has two documents with different labels, so there are no pairs to learn from."""


class OptionError(RankSVMError, ValueError):
    """An option has an invalid value."""


class MissingDependencyError(RankSVMError, ImportError):
    """An optional package is needed; the message names the ``pip install`` line."""


class DeviceError(RankSVMError, RuntimeError):
    """A device that was asked for is not there, is out of memory, or has failed."""


class ModelFileError(RankSVMError, ValueError):
    """A model or cache file is truncated, altered, of another kind, or of a newer version."""


class ClusterError(RankSVMError, RuntimeError):
    """A cluster does not answer any more, has no workers left, or has lost data that it cannot compute again."""


class StoreError(RankSVMError, RuntimeError):
    """The store of a learning service is locked, full, damaged, out of reach, of another version, or no store."""


class OneQueryWarning(UserWarning):
    """Rows without query ids were fitted, evaluated or scaled as one query; with many rows this is a DataError."""


class ScaleWarning(UserWarning):
    """The features of an evaluation set are not of the scale of the training data: one of them was scaled."""


class UninformativeWarning(UserWarning):
    """A fit or a calibration has learnt nothing: all weights, or the slope, are 0."""
