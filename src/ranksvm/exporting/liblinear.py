"""Model files of LIBLINEAR, written and read."""

import numpy as np

from ranksvm.exceptions import ModelFileError
from ranksvm.exporting.reading import LinearFile, broken, for_larger_label, number, settings_until
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.text import SCALE_THE_FILES, exact, self_test_text

__all__ = ["LIBLINEAR", "is_liblinear", "read_liblinear"]


def write(request: Request) -> bytes:
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
        raise ModelFileError(f"{path}: nr_feature is {announced}, which is no whole number.")
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
    write,
    no_query_scaler=SCALE_THE_FILES,
    additive=False,
)
