"""`benchmarks/first_gpu.sh`, on the stand-in for the CUDA driver."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import stand_in_driver

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


def run(folder, *options, **variables):
    command = ["bash", str(ROOT / "benchmarks" / "first_gpu.sh"), str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables, check=False)
    return done, (folder / "summary.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_step_leaves_its_page(tmp_path):
    why = stand_in_driver.missing()
    if why is not None:
        pytest.skip(why)
    pytest.importorskip("matplotlib")
    # loaded in every process of Python
    loads = f"from stand_in_driver import active_stand_in\nactive_stand_in({str(tmp_path)!r})\n"
    (tmp_path / "sitecustomize.py").write_text(loads, encoding="utf-8")
    paths = [ROOT / "tests", tmp_path]
    own = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "XDG_CACHE_HOME": str(tmp_path)}
    done, summary = run(tmp_path / "out", "--smoke", PYTHON=sys.executable, **own)
    assert done.returncode == 0, summary + done.stderr
    assert [line.partition(" (")[0] for line in summary.splitlines() if "left out" not in line] == [
        "checks: ok",
        "calibration: ok",
        "page: ok",
    ]
    assert "63 of 63 fits are correct" in (tmp_path / "out" / "checks.log").read_text(encoding="utf-8")
    assert "DeviceCosts(round=" in (tmp_path / "out" / "calibration.log").read_text(encoding="utf-8")
    page = (tmp_path / "out" / "gpu.md").read_text(encoding="utf-8")
    assert "cuda-core" in page
    assert "Not measured" not in page
    assert "| fused_loss |" in page


def test_what_fails_is_said_and_the_other_steps_run(tmp_path):
    done, summary = run(tmp_path, PYTHON=shutil.which("false"))
    assert done.returncode == 1
    for step in ("checks", "calibration", "page"):
        assert f"{step}: FAILED, status 1" in summary


def test_what_takes_too_long_is_stopped(tmp_path):
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    slow.chmod(0o755)
    done, summary = run(tmp_path / "out", PYTHON=str(slow), SECONDS_IN_ALL="1")
    assert done.returncode == 1
    assert summary.count("STOPPED, for lack of time") >= 3
