"""Numbers are rounded once, from decimal text to float32 or float64, and written so that they read back the same."""

from fractions import Fraction

import numpy as np
import pytest
import ranksvm._compiled.letor as compiled
from hypothesis import given, settings, strategies as st

from ranksvm.datasets import read_letor, write_letor


def parse(texts, dtype):
    """What the compiled parser makes of numbers."""
    lines = "".join(f"0 1:{text}\n" for text in texts).encode()
    text = np.frombuffer(lines, dtype=np.uint8)
    X, label = np.empty((len(texts), 1), dtype=dtype), np.empty(len(texts))
    report = compiled.parse_dense(text, 0, len(text), (1, True, False, True, False), X, label, None, None, None)
    assert report[6] == 0, texts
    return X[:, 0]


def nearest_float32(text):
    """Oracle: the float32 nearest to the exact decimal, ties to the even one."""
    exact = Fraction(text)
    near = np.float32(float(text))
    candidates = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    candidates = [value for value in candidates if np.isfinite(value)]
    even = [int(np.float32(value).view(np.uint32)) & 1 for value in candidates]
    return min(zip(candidates, even, strict=True), key=lambda c: (abs(Fraction(float(c[0])) - exact), c[1]))[0]


decimals = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.floats(-1e30, 1e30).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=7).map(
        lambda value: f"{value:f}"
    ),
    st.builds(
        lambda sign, whole, part, e: f"{sign}{whole}.{part}{e}",
        st.sampled_from(["", "-", "+"]),
        st.integers(0, 10**25),
        st.text("0123456789", max_size=30),
        st.sampled_from(["", "e3", "E-7", "e+11", "e-40"]),
    ),
).filter(lambda text: abs(Fraction(text)) < Fraction(3.4e38))


@given(st.lists(decimals, min_size=1, max_size=20))
@settings(max_examples=400)
def test_correctly_rounded(texts):
    assert parse(texts, np.float64).tolist() == [float(text) for text in texts]
    assert parse(texts, np.float32).tolist() == [nearest_float32(text) for text in texts]


@given(st.integers(1, 2**24 - 1), st.integers(-30, 30), st.sampled_from([-1, 0, 1]), st.booleans())
@settings(max_examples=400)
def test_near_the_middle_between_two_float32(mantissa, exponent, nudge, down):
    # Rounding to double first loses the nudge, and then the tie goes to the even neighbor.
    middle = (Fraction(mantissa) + Fraction(1, 2)) * Fraction(2) ** exponent
    digits = 80
    text = f"{int((middle + nudge * Fraction(1, 10**60)) * 10**digits)}e-{digits}"
    text = "-" + text if down else text
    assert parse([text], np.float32)[0] == nearest_float32(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0),
        ("5.", 5.0),
        (".5", 0.5),
        ("+1", 1.0),
        ("-0", -0.0),
        ("-0.000000", -0.0),
        ("007", 7.0),
        ("1e-400", 0.0),
        ("-1e-400", -0.0),
        ("0e999999999", 0.0),
        ("0.00000000000000000000000000000001e30", 0.01),
        ("1" + "0" * 400 + "e-400", 1.0),
        ("0." + "0" * 400 + "1e401", 1.0),
        ("9007199254740993", 9007199254740992.0),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("4.9e-324", 5e-324),
        ("16777217", 16777217.0),
    ],
)
def test_odd_spellings(text, value):
    got = parse([text], np.float64)[0]
    assert got == value
    assert np.signbit(got) == np.signbit(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-46", 0.0), ("1e-45", 1.4e-45), ("1.1754943e-38", 1.1754944e-38), ("3.4028234663852886e38", 3.4028235e38)],
)
def test_ends_of_float32(text, value):
    assert parse([text], np.float32)[0] == np.float32(value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_bit_pattern_is_written_and_read_back(dtype, tmp_path):
    unsigned = {np.float32: np.uint32, np.float64: np.uint64}[dtype]
    bits = np.random.default_rng(0).integers(0, np.iinfo(unsigned).max, size=(4000, 5), dtype=unsigned, endpoint=True)
    X = bits.view(dtype)
    X[~np.isfinite(X)] = 0
    write_letor(tmp_path / "numbers.txt", X, X[:, 0].astype(np.float64))
    data = read_letor(tmp_path / "numbers.txt", dtype=dtype)
    assert np.array_equal(data.X.view(unsigned), X.view(unsigned))
    assert np.array_equal(data.y, X[:, 0].astype(np.float64))
