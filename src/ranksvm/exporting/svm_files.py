"""Model files of SVM-rank (SVM-light), LIBLINEAR and LIBSVM, written and read.

A file of SVM-light has eleven lines of settings, each with a comment after ``#``, and a line for every support vector:
``alpha*y`` and its features. A linear model has one support vector, its weights. LIBSVM writes the same sum of kernel
functions, and LIBLINEAR the weights of a linear model.
"""

import re

import numpy as np

from ranksvm.exceptions import ModelFileError, OptionError
from ranksvm.exporting.reading import (
    LinearFile,
    broken,
    for_larger_label,
    number,
    settings_until,
    sum_of_vectors,
    support_vectors,
)
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.scoring import KernelSum, Linear
from ranksvm.exporting.text import exact, self_test_text, sparse_row

__all__ = [
    "LIBLINEAR",
    "LIBSVM",
    "SVM_RANK",
    "is_liblinear",
    "is_libsvm",
    "is_svm_light",
    "read_liblinear",
    "read_libsvm",
    "read_svm_light",
]

# Lines before the support vectors: the version, five parameters of kernels, a user parameter, and counts.
_SETTINGS = (
    *("kernel type", "kernel parameter -d", "kernel parameter -g", "kernel parameter -s", "kernel parameter -r"),
    *("kernel parameter -u", "highest feature index", "number of training documents"),
    *("number of support vectors plus 1", "threshold b, each following line is a SV (starting with alpha*y)"),
)
_VERSION = re.compile(r"SVM-light Version V\S+", re.ASCII)
# Why these formats have no per-query scaler.
_SCALE_THE_FILES = "its programs score one document at a time: scale the data files"


def _plain_vectors(request: Request, target: str) -> list[tuple[float, np.ndarray]]:
    """Coefficients and documents of a kernel model; OptionError if it has a scaler or random Fourier features."""
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


def _rbf_or_poly(function: object, program: str) -> tuple[str, dict[str, float]]:
    """Name and parameters of the kernel; OptionError if SVM-light and LIBSVM do not have it."""
    assert isinstance(function, KernelSum)
    given, name = function.kernel.parameters, function.kernel.name
    if name not in ("rbf", "poly"):
        raise OptionError(f"{program} has no kernel {name!r}, only linear, poly and rbf: export to onnx.")
    if name == "poly" and given["degree"] != int(given["degree"]):
        raise OptionError(f"the degree of a polynomial kernel of {program} is a whole number.")
    return name, given


def write_svm_light(request: Request) -> bytes:
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
        vectors = _plain_vectors(request, "svm-rank")
        kind, parameters = _kernel_of_svm_light(function)
    settings = [kind, *map(_setting, parameters), "empty", request.scoring.n_features, 1, len(vectors) + 1]
    lines = ["SVM-light Version V6.20"]
    lines += [f"{value} # {name}" for value, name in zip(settings, _SETTINGS[:-1], strict=True)]
    lines.append(f"{exact(threshold)} # {_SETTINGS[-1]}")
    lines += [f"{exact(alpha)} {sparse_row(vector)} #" for alpha, vector in vectors]
    # what follows the # of a support vector is a comment
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


def _kernel_of_svm_light(function: object) -> tuple[int, tuple[float, ...]]:
    """Kernel type and the parameters -d, -g, -s and -r."""
    name, given = _rbf_or_poly(function, "SVM-light")
    if name == "rbf":
        return 2, (3, given["gamma"], 1.0, 1.0)
    return 1, (int(given["degree"]), 1.0, given["gamma"], given["coef0"])


def _setting(value: float) -> str:
    return str(value) if isinstance(value, int | np.integer) else exact(value)


SVM_RANK = Target(
    "svm-rank",
    ".model",
    write_svm_light,
    no_query_scaler=_SCALE_THE_FILES,
    additive=False,
    kernels=True,
)


def write_liblinear(request: Request) -> bytes:
    """The model file, written as a regression, because LIBLINEAR's ``predict`` prints the values of a regression.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        Text; LIBLINEAR ignores what follows the weights.
    """
    weights, intercept = request.folded()
    # with bias 1, LIBLINEAR appends a feature that is 1 to every document
    biased = intercept != 0.0
    lines = [
        "solver_type L2R_L2LOSS_SVR",
        "nr_class 2",
        f"nr_feature {len(weights)}",
        f"bias {1 if biased else -1}",
        "w",
        *(f"{exact(weight)} " for weight in ([*weights, intercept] if biased else weights)),
        f"# written by ranksvm; install: predict test.txt {request.file} scores.txt",
        f"# self-test: {self_test_text(request)}",
    ]
    return ("\n".join(lines) + "\n").encode()


def read_liblinear(path: str, text: str, n_features: int | None = None) -> LinearFile:
    """The weights of a model of two classes, or of a regression or ranking.

    Parameters
    ----------
    path : str
        Name of the file, for messages.
    text : str
        Its content.
    n_features : int, optional
        Number of features, at least the number in the file; None: the number in the file.

    Returns
    -------
    LinearFile
        The model, with a higher score for the larger label; the weight of a bias, which changes no ranking, is ignored.

    Raises
    ------
    ModelFileError
        When the text is not a model file of LIBLINEAR, is truncated, or has more than two classes.
    """
    lines = text.splitlines()
    settings, first = settings_until(path, lines, "w")
    announced = number(path, 1, " ".join(settings.get("nr_feature", ["?"])))
    if announced % 1:
        raise ModelFileError(f"{path}: nr_feature is {announced}, which is not a whole number.")
    found = int(announced)
    biased = number(path, 1, " ".join(settings.get("bias", ["-1"]))) >= 0
    weights = []
    for place, line in enumerate(lines[first : first + found + biased], first + 1):
        words = line.split()
        if len(words) != 1:
            raise broken(path, place, f"expected one weight, got {line.strip()[:40]!r}.")
        weights.append(number(path, place, words[0]))
    if len(weights) < found + biased or found < 1:
        raise ModelFileError(f"{path}: {len(weights)} weights, but {found + biased} were announced: is it truncated?")
    if n_features is not None and n_features < found:
        raise ModelFileError(f"{path}: the model has {found} features, more than the {n_features} asked for.")
    coef = np.zeros(found if n_features is None else n_features)
    coef[:found] = weights[:found]
    kind = " ".join(settings.get("solver_type", ["?"]))
    return LinearFile(for_larger_label(path, coef, settings), f"LIBLINEAR {kind}")


def is_liblinear(text: str) -> bool:
    """Whether a text begins like a model file of LIBLINEAR."""
    return text.startswith("solver_type ")


LIBLINEAR = Target(
    "liblinear",
    ".model",
    write_liblinear,
    no_query_scaler=_SCALE_THE_FILES,
    additive=False,
)


def write_libsvm(request: Request) -> bytes:
    """The model file, written as a support vector regression, because ``svm-predict`` prints its values.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        Text; LIBSVM ignores what follows the support vectors.
    """
    function, rho = request.scoring.function, 0.0
    if isinstance(function, Linear):
        weights, intercept = request.folded()
        rho, vectors, kernel = -intercept, [(1.0, weights)], ["kernel_type linear"]
    else:
        vectors = _plain_vectors(request, "libsvm")
        kernel = _kernel_of_libsvm(function)
    lines = ["svm_type epsilon_svr", *kernel, "nr_class 2", f"total_sv {len(vectors)}", f"rho {exact(rho)}", "SV"]
    lines += [f"{exact(alpha)} {sparse_row(vector)} " for alpha, vector in vectors]
    lines += [
        f"# written by ranksvm; install: svm-predict test.txt {request.file} scores.txt",
        f"# self-test: {self_test_text(request)}",
    ]
    return ("\n".join(lines) + "\n").encode()


def read_libsvm(path: str, text: str, n_features: int | None = None) -> LinearFile:
    """The weights of a linear model of two classes or of a regression.

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
        The model, with a higher score for the larger label; ``rho``, which changes no ranking, is ignored.

    Raises
    ------
    ModelFileError
        When the text is not a model file of LIBSVM, its kernel is not linear, or it has more than two classes.
    """
    lines = text.splitlines()
    settings, first = settings_until(path, lines, "SV")
    kernel = " ".join(settings.get("kernel_type", ["unknown"]))
    if kernel != "linear":
        raise ModelFileError(f"{path}: the kernel is {kernel!r}: only linear models can be imported.")
    terms = support_vectors(path, lines, first)
    total = settings.get("total_sv", [""])
    if [str(len(terms))] != total:
        raise broken(path, len(lines), f"{len(terms)} support vectors, but total_sv is {' '.join(total)}: truncated?")
    coef = sum_of_vectors(path, terms, n_features)
    kind = " ".join(settings.get("svm_type", ["?"]))
    return LinearFile(for_larger_label(path, coef, settings), f"LIBSVM {kind}")


def is_libsvm(text: str) -> bool:
    """Whether a text begins like a model file of LIBSVM."""
    return text.startswith("svm_type ")


def _kernel_of_libsvm(function: object) -> list[str]:
    name, given = _rbf_or_poly(function, "LIBSVM")
    if name == "rbf":
        return ["kernel_type rbf", f"gamma {exact(given['gamma'])}"]
    parameters = f"gamma {exact(given['gamma'])}", f"coef0 {exact(given['coef0'])}"
    return ["kernel_type polynomial", f"degree {int(given['degree'])}", *parameters]


LIBSVM = Target(
    "libsvm",
    ".model",
    write_libsvm,
    no_query_scaler=_SCALE_THE_FILES,
    additive=False,
    kernels=True,
)
