"""Vectors as ``id:value`` text, ids from 1, as in the files of SVM-light, LIBSVM and LETOR."""

import numpy as np

from ranksvm.exceptions import OptionError
from ranksvm.exporting.request import Request
from ranksvm.exporting.scoring import KernelSum, Linear
from ranksvm.exporting.text import exact

__all__ = ["SCALE_THE_FILES", "plain_vectors", "rbf_or_poly", "self_test_text", "sparse_row"]

# Why these formats have no per-query scaler.
SCALE_THE_FILES = "its programs score one document at a time: scale the data files"


def sparse_row(vector: np.ndarray) -> str:
    """The values that are not 0."""
    return " ".join(f"{column + 1}:{exact(vector[column])}" for column in np.flatnonzero(vector))


def self_test_text(request: Request) -> str:
    """Three documents and their scores, in one line."""
    pairs = zip(request.test.X, request.test.scores, strict=True)
    return "; ".join(f"{sparse_row(x) or 'all 0'} -> {exact(score)}" for x, score in pairs)


def plain_vectors(request: Request, target: str) -> list[tuple[float, np.ndarray]]:
    """Coefficients and documents of a kernel model; OptionError if the file would need more than that."""
    function = request.scoring.function
    if isinstance(function, KernelSum):
        if request.scaling is not None:
            raise OptionError(
                f"{target} files hold no scaler, and the scaler of a kernel model cannot be folded into it: scale the "
                "data files, or export to onnx."
            )
        return list(zip(function.coef.tolist(), function.vectors, strict=True))
    assert not isinstance(function, Linear)
    raise OptionError(f"{target} files hold no random Fourier features: export to onnx.")


def rbf_or_poly(function: object, program: str) -> tuple[str, dict[str, float]]:
    """Name and parameters of the kernel; OptionError if SVM-light and LIBSVM do not have it."""
    assert isinstance(function, KernelSum)
    given, name = function.kernel.parameters, function.kernel.name
    if name not in ("rbf", "poly"):
        raise OptionError(f"{program} has no kernel {name!r}, only linear, poly and rbf: export to onnx.")
    if name == "poly" and given["degree"] != int(given["degree"]):
        raise OptionError(f"the degree of a polynomial kernel of {program} is a whole number.")
    return name, given
