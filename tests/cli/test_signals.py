"""Signals end a command with one line and the exit code of shells, never with a traceback, and leave no files."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_a_signal_while_data_are_read(number, code, delay, tmp_path):
    pipe = tmp_path / "data.txt"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "ranksvm", "train", str(pipe), "-o", str(tmp_path / "model")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    writer = os.open(pipe, os.O_WRONLY)  # waits until the command reads
    time.sleep(delay)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    os.close(writer)
    assert process.returncode == code, stderr
    assert "Traceback" not in stderr
    assert stderr.strip().splitlines()[-1].startswith(("Terminated: ", "Interrupted: "))
    assert os.listdir(tmp_path) == ["data.txt"]
