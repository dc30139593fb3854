"""A few cases of every fuzzer; ``make fuzz`` runs many, with sanitizers."""

import sys

import numpy as np
import pytest

from fuzz import run


@pytest.mark.parametrize("target", [target for target in run.TARGETS if target != "serving"])
def test_some_cases(target, tmp_path):
    if target == "parquet":
        pytest.importorskip("pyarrow")
    case = run.target_named(target, tmp_path)
    for number in range(60):
        case.run(np.random.default_rng([*target.encode(), number]))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_a_service_under_hostile_requests_that_is_killed(tmp_path):
    pytest.importorskip("starlette", reason="starlette is not installed: no service is tested")
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: no service is tested")
    service = run.target_named("serving", tmp_path)
    service.requests = 500
    service.run(np.random.default_rng([*b"serving", 14]))
    assert service.figures["requests"] == 500
    assert set(service.figures["kills"]) == {"service", "both", "learner"}


def test_a_crash_is_a_find(tmp_path, monkeypatch, capsys):
    path = tmp_path / "crashing.py"
    path.write_text(
        "import os\nclass Target:\n    def __init__(self, folder): pass\n    def run(self, random): os.abort()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run.fuzz("crashing", 0, 2, 20.0) == 2
    assert "FIND crashing 1: the worker ended with status -6" in capsys.readouterr().out
