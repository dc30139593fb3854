"""The random search of the low-rank pages goes on where it stopped."""

import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).parents[2] / "benchmarks" / "low_rank.py"


def run(cache, *options):
    command = [sys.executable, str(SCRIPT), "--smoke", "--models", "plain,hinge", "--cache", str(cache), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_search_goes_on_where_it_stopped(tmp_path):
    cache = tmp_path / "fits.jsonl"
    stopped = run(cache, "--seconds", "0")
    assert stopped.returncode == 1
    assert "8 fits are left: run the same command again." in stopped.stderr
    assert run(cache).returncode == 0
    lines = cache.read_text(encoding="utf-8").splitlines(keepends=True)
    assert len(lines) == 8
    # as a run leaves it that was ended while it wrote: that fit alone is done again
    cache.write_text("".join([*lines[:-1], lines[-1][: len(lines[-1]) // 2]]), encoding="utf-8")
    again = run(cache)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count(" left\n") == 1
    assert len(cache.read_text(encoding="utf-8").splitlines()) == 8


def test_an_unknown_model_is_named(tmp_path):
    found = run(tmp_path / "fits.jsonl", "--models", "plane")
    assert found.returncode == 1
    assert "There is no 'plane': there are plain, " in found.stderr
