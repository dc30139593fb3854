"""The choice of an instruction set, and that no unit defines names another unit could be given."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from ranksvm._compiled import instruction_set, linear
from ranksvm.exceptions import OptionError


def _asked_for(name):
    command = "from ranksvm._compiled import instruction_set; print(instruction_set.current())"
    return subprocess.run(
        [sys.executable, "-c", command],
        env={**os.environ, instruction_set.VARIABLE: name},
        capture_output=True,
        text=True,
    )


def test_the_environment_variable_forces_a_set(loops):
    assert _asked_for(loops).stdout.strip() == loops


def test_without_it_the_newest_is_taken():
    assert _asked_for("").stdout.strip() == instruction_set.available()[-1]


def test_an_unknown_set_is_an_error():
    assert "no instruction set 'sse9'" in _asked_for("sse9").stderr


def test_a_set_that_the_processor_lacks_is_an_error(monkeypatch):
    monkeypatch.setattr(instruction_set, "available", lambda: ("baseline",))
    lacking = set(instruction_set.COMPILED) - {"baseline"}
    for name in lacking:
        with pytest.raises(OptionError, match="does not support"):
            instruction_set.use(name)


def test_the_loops_change_with_the_set(loops):
    assert instruction_set.current() == loops
    rng = np.random.default_rng(0)
    X, w, out = rng.normal(size=(64, 46)), rng.normal(size=46), np.empty(64)
    linear.dense_products(X, None).scores(0, 64, w, out)
    np.testing.assert_allclose(out, X @ w, rtol=1e-13, atol=1e-13)


def _libraries():
    """The units of each set, beside the modules of an editable install."""
    folder = pathlib.Path(linear.__file__).parent
    return {name: folder / f"libloops_{name}.a" for name in instruction_set.COMPILED}


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
def test_units_define_names_in_their_own_namespace_only():
    """A function that two units define is kept once: it must not be one compiled for a newer processor."""
    checked = 0
    for name, library in _libraries().items():
        if not library.exists():
            continue
        listing = subprocess.run(
            ["nm", "-C", "--defined-only", str(library)], capture_output=True, text=True, check=True
        )
        symbols = [line.split(maxsplit=2) for line in listing.stdout.splitlines()]
        # (DW.ref: a pointer to the routine that unwinds the stack)
        external = [s[2] for s in symbols if len(s) == 3 and (s[1].isupper() or s[1] in "uvw") and "DW.ref" not in s[2]]
        assert [symbol for symbol in external if f"ranksvm::{name}::" not in symbol] == []
        checked += 1
    if not checked:
        pytest.skip("the units are not beside the modules: not an editable install")
