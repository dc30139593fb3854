"""Model files of LIBSVM, written and read: a sum of kernel functions, as ``svm-predict`` computes it."""

from ranksvm.exceptions import ModelFileError
from ranksvm.exporting.reading import (
    LinearFile,
    broken,
    for_larger_label,
    settings_until,
    sum_of_vectors,
    support_vectors,
)
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.scoring import Linear
from ranksvm.exporting.text import SCALE_THE_FILES, exact, plain_vectors, rbf_or_poly, self_test_text, sparse_row

__all__ = ["LIBSVM", "is_libsvm", "read_libsvm"]


def write(request: Request) -> bytes:
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
        vectors = plain_vectors(request, "libsvm")
        kernel = _kernel(function)
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


def _kernel(function: object) -> list[str]:
    name, given = rbf_or_poly(function, "LIBSVM")
    if name == "rbf":
        return ["kernel_type rbf", f"gamma {exact(given['gamma'])}"]
    parameters = f"gamma {exact(given['gamma'])}", f"coef0 {exact(given['coef0'])}"
    return ["kernel_type polynomial", f"degree {int(given['degree'])}", *parameters]


LIBSVM = Target(
    "libsvm",
    ".model",
    write,
    no_query_scaler=SCALE_THE_FILES,
    additive=False,
    kernels=True,
)
