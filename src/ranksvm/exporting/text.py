"""How exported files write numbers, names, commands, vectors and self-tests."""

import json
import re
import shlex
from collections.abc import Sequence
from urllib.parse import quote

import numpy as np

from ranksvm.exceptions import OptionError
from ranksvm.exporting.request import Request

__all__ = [
    "IDENTIFIER",
    "NO_RETRIEVERS",
    "check_identifier",
    "curl_line",
    "exact",
    "float32_number",
    "json_bytes",
    "self_test_text",
    "shell_word",
    "sparse_row",
    "url_word",
]

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Why the formats with both scalers by query have no RetrieverScaler.
NO_RETRIEVERS = "its scalers by query are QueryMinMaxScaler and QueryStandardScaler"


def exact(value: float) -> str:
    """A number with a point or an exponent, as the shortest text that reads back as the same float64."""
    return repr(float(value))


def float32_number(value: float) -> float:
    """A number rounded to float32, as a float with few digits."""
    with np.errstate(over="ignore"):
        return float(str(np.float32(value)))


def json_bytes(document: object, indent: int | None = 2) -> bytes:
    """A document of JSON, indented or in one line, that ends with a line break."""
    return (json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False) + "\n").encode()


def curl_line(key: str, file: str, method: str, address: str) -> str:
    """The shell command that sends the value of a key in a JSON file."""
    return (
        f"jq .{key} {shell_word(file)} | curl -X {method} {address} -H 'Content-Type: application/json' "
        "--data-binary @-"
    )


def shell_word(text: str) -> str:
    """One word of a shell command."""
    return shlex.quote(text)


def url_word(text: str) -> str:
    """One part of the path of a URL, safe in a shell too."""
    return quote(text, safe="")


def check_identifier(name: str, language: str, reserved: Sequence[str] = ()) -> None:
    """Raise OptionError if a model's name cannot name a function or class."""
    if IDENTIFIER.fullmatch(name) is None or name in reserved:
        raise OptionError(
            f"{name!r} cannot name the model in {language}: give another name of letters, digits and _ that begins "
            "with a letter (name=..., or --name)."
        )


def sparse_row(vector: np.ndarray) -> str:
    """The values that are not 0, as ``id:value`` with ids from 1."""
    return " ".join(f"{column + 1}:{exact(vector[column])}" for column in np.flatnonzero(vector))


def self_test_text(request: Request) -> str:
    """Three documents and their scores, in one line."""
    pairs = zip(request.test.X, request.test.scores, strict=True)
    return "; ".join(f"{sparse_row(x) or 'all 0'} -> {exact(score)}" for x, score in pairs)
