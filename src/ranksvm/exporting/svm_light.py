"""Model files of SVM-rank and SVM-light, written and read.

A file has eleven lines of settings, each with a remark after ``#``, and a line for every support vector:
``alpha*y`` and its features. A linear model has one support vector, its weights.
"""

import re

import numpy as np

from ranksvm.exceptions import ModelFileError
from ranksvm.exporting.reading import LinearFile, broken, number, sum_of_vectors, support_vectors
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.scoring import Linear
from ranksvm.exporting.text import SCALE_THE_FILES, exact, plain_vectors, rbf_or_poly, self_test_text, sparse_row

__all__ = ["SVM_RANK", "is_svm_light", "read_svm_light"]

# Lines before the support vectors: the version, five parameters of kernels, a user parameter, and counts.
_SETTINGS = (
    *("kernel type", "kernel parameter -d", "kernel parameter -g", "kernel parameter -s", "kernel parameter -r"),
    *("kernel parameter -u", "highest feature index", "number of training documents"),
    *("number of support vectors plus 1", "threshold b, each following line is a SV (starting with alpha*y)"),
)
_VERSION = re.compile(r"SVM-light Version V\S+", re.ASCII)


def write(request: Request) -> bytes:
    """The model file.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        Text, as ``svm_rank_classify`` and ``svm_classify`` read it.
    """
    function = request.scoring.function
    threshold, kind = 0.0, 0
    parameters: tuple[float, ...] = (3, 1.0, 1.0, 1.0)
    if isinstance(function, Linear):
        weights, intercept = request.folded()
        threshold, vectors = -intercept, [(1.0, weights)]
    else:
        vectors = plain_vectors(request, "svm-rank")
        kind, parameters = _kernel(function)
    settings = [kind, *map(_setting, parameters), "empty", request.scoring.n_features, 1, len(vectors) + 1]
    lines = ["SVM-light Version V6.20"]
    lines += [f"{value} # {name}" for value, name in zip(settings, _SETTINGS[:-1], strict=True)]
    lines.append(f"{exact(threshold)} # {_SETTINGS[-1]}")
    lines += [f"{exact(alpha)} {sparse_row(vector)} #" for alpha, vector in vectors]
    # what follows the # of a support vector is a remark
    lines[-1] += (
        f" written by ranksvm; install: svm_rank_classify test.txt {request.file} scores.txt; "
        f"self-test: {self_test_text(request)}"
    )
    return ("\n".join(lines) + "\n").encode()


def read_svm_light(path: str, text: str, n_features: int | None = None) -> LinearFile:
    """The weights of a linear model.

    Parameters
    ----------
    path : str
        Name of the file, for messages.
    text : str
        Its content.
    n_features : int, optional
        Number of features; None: the largest id that has a weight.

    Returns
    -------
    LinearFile
        The model; the threshold, which changes no ranking, is ignored.

    Raises
    ------
    ModelFileError
        When the text is not a model file of SVM-rank or SVM-light, or its kernel is not linear.
    """
    lines = text.splitlines()
    if len(lines) < len(_SETTINGS) + 1:
        raise ModelFileError(f"{path}: the file ends within the settings: {len(_SETTINGS) + 1} lines were expected.")
    version = _VERSION.match(lines[0])
    if version is None:
        raise broken(path, 1, "the first line is not 'SVM-light Version V...'.")
    values = [line.split("#", 1)[0].strip() for line in lines[1 : len(_SETTINGS) + 1]]
    if values[0] != "0":
        raise broken(path, 2, f"kernel type {values[0]!r}: only linear models (0) can be imported.")
    count = number(path, 10, values[8])
    first = len(_SETTINGS) + 1
    terms = support_vectors(path, lines, first)
    if len(terms) != count - 1:
        raise ModelFileError(f"{path}: {len(terms)} support vectors, but line 10 says {count - 1:g}: is it truncated?")
    return LinearFile(sum_of_vectors(path, terms, n_features), version[0])


def is_svm_light(text: str) -> bool:
    """Whether a text begins like a model file of SVM-rank or SVM-light."""
    return _VERSION.match(text) is not None


def _kernel(function: object) -> tuple[int, tuple[float, ...]]:
    """Kernel type and the parameters -d, -g, -s and -r."""
    name, given = rbf_or_poly(function, "SVM-light")
    if name == "rbf":
        return 2, (3, given["gamma"], 1.0, 1.0)
    return 1, (int(given["degree"]), 1.0, given["gamma"], given["coef0"])


def _setting(value: float) -> str:
    return str(value) if isinstance(value, int | np.integer) else exact(value)


SVM_RANK = Target(
    "svm-rank",
    ".model",
    write,
    no_query_scaler=SCALE_THE_FILES,
    additive=False,
    kernels=True,
)
