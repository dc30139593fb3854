"""How exported files write numbers, names and remarks."""

import json
import re
import shlex
from collections.abc import Sequence
from urllib.parse import quote

import numpy as np

from ranksvm.exceptions import OptionError

__all__ = [
    "IDENTIFIER",
    "curl_line",
    "exact",
    "float32_number",
    "identifier_checked",
    "json_bytes",
    "shell_word",
    "url_word",
]

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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


def identifier_checked(name: str, language: str, reserved: Sequence[str] = ()) -> None:
    """Raise OptionError if a model's name cannot name a function or class."""
    if IDENTIFIER.fullmatch(name) is None or name in reserved:
        raise OptionError(
            f"{name!r} cannot name the model in {language}: give a name of letters, digits and _ that begins with a "
            "letter (name=..., or --name)."
        )
