"""A matrix in JSON is read as `json` reads it, or not at all."""

import json
import pathlib
import random
import re

import numpy as np
import pytest
from ranksvm._compiled.json_matrix import PADDING, read

# calls of headers that hold vectors, which fill none themselves
ALLOCATE_NOTHING = {"c_count", "c_widen", "c_running_sums", "&query"}


def found(text, start=0):
    result = read(text.encode() + PADDING, start)
    if result is None:
        return None
    rows, columns, first, stop, numbers = result
    assert json.loads(text[first:stop]) is not None
    return np.frombuffer(numbers).reshape(rows, columns)


def test_numbers_are_rounded_once():
    rng = random.Random(0)
    numbers = [0, -0.0, 1, -1, 5e-324, 1.7976931348623157e308, 1e-400, 0.1, 123456789012345678901234567890, 2**53 + 1]
    numbers += [float(f"{rng.uniform(-10, 10):.{rng.randrange(1, 25)}g}") for _ in range(500)]
    numbers += [rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 300) for _ in range(500)]
    text = f": [[{', '.join(map(repr, numbers))}],\n\t[{','.join(['1.5E+3'] * len(numbers))}] ] }}"
    X = found(text)
    assert X[0].tobytes() == np.array([float(number) for number in numbers]).tobytes()
    assert (X[1] == 1500.0).all()


@pytest.mark.parametrize("text", [":[[1]]", ' : [ [ 1 , 2 ] , [ 3 , 4 ] ] , "ids": ["a"]}'])
def test_blanks_do_not_matter(text):
    assert found(text).tolist() in ([[1.0]], [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    "value",
    [
        *("", "1", "[]", "[[]]", "[1]", "[[1], []]", "[[1], [1, 2]]", "[[01]]", "[[+1]]", "[[.5]]", "[[1.]]", "[[1e]]"),
        *(
            "[[1e999]]",
            "[[NaN]]",
            "[[null]]",
            '[["1"]]',
            "[[1,]]",
            "[[1],]",
            "[[1]",
            "[[1",
            "[[-]]",
            "[[1 2]]",
            "[[--1]]",
        ),
    ],
)
def test_what_is_not_plain_is_left_to_another_reader(value):
    assert found(f":{value}") is None
    assert found(value) is None


def test_the_border_is_checked():
    with pytest.raises(ValueError, match="padding"):
        read(b":[[1]]1234567890", 0)
    for start in (-1, 7):
        with pytest.raises(ValueError, match="text"):
            read(b":[[1]]" + PADDING, start)


def declared_calls(source):
    """The header and the declaration of each call of C++ in the text of a Cython file."""
    for header, body in re.findall(r'^cdef extern from "(.+?)".*\n((?:[ \t]+.*\n|\n)*)', source, re.MULTILINE):
        text = re.sub(r"\n\s*(?![^()]*\()(?=[^()]*\))", " ", body)
        yield from ((header, line.strip()) for line in text.splitlines() if "(" in line)


def test_calls_that_allocate_pass_their_errors_on():
    """std::bad_alloc without `except +` ends the process: headers that hold a vector or a string may throw it."""
    folder = pathlib.Path(__file__).parents[2] / "src" / "ranksvm" / "_compiled"
    calls = [call for path in folder.glob("*.p[yx][xd]") for call in declared_calls(path.read_text())]
    allocate = re.compile(r"std::vector|std::string|\bVector<|make_unique")
    silent = [
        call for header, call in calls if "except +" not in call and allocate.search((folder / header).read_text())
    ]
    assert {re.search(r"(\S+)( \".*\")?\(", call)[1] for call in silent} == ALLOCATE_NOTHING
