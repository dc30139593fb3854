"""Signals end a command with one line and the exit code of shells, never with a traceback, and leave no files."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")


def heed_ctrl_c():
    """In a new process: shells start background jobs, such as these tests may be, with Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_a_signal_while_data_are_read(number, code, delay, tmp_path):
    pipe = tmp_path / "data.txt"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "ranksvm", "train", str(pipe), "-o", str(tmp_path / "model")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c
    )
    writer = os.open(pipe, os.O_WRONLY)  # waits until the command reads
    time.sleep(delay)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    os.close(writer)
    assert process.returncode == code, stderr
    assert "Traceback" not in stderr
    assert stderr.strip().splitlines()[-1].startswith(("Terminated: ", "Interrupted: "))
    assert os.listdir(tmp_path) == ["data.txt"]


# The main thread blocks the signal and reads; another thread receives it. So the main thread is in the state of one
# that the signal has reached just before its read.
_READS_PAST_A_SIGNAL = """
import os, signal, sys, threading
from ranksvm.cli.output.errors import TerminatedError, terminable

number = int(sys.argv[1])
reader, writer = os.pipe()
with terminable():
    receiver = threading.Thread(target=lambda: threading.Event().wait(20), daemon=True)
    receiver.start()
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
    try:
        os.read(reader, 1)
    except (TerminatedError, KeyboardInterrupt) as error:
        print(type(error).__name__)
assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL
print([thread.name for thread in threading.enumerate() if "ranksvm" in thread.name])
"""


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGTERM, "TerminatedError"), (signal.SIGINT, "KeyboardInterrupt")]
)
def test_a_signal_just_before_a_read_that_blocks(number, raised):
    command = [sys.executable, "-c", _READS_PAST_A_SIGNAL, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=heed_ctrl_c)
    assert done.stdout.splitlines() == [raised, "[]"], done.stderr


_INTERRUPTED_IMPORT = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from ranksvm.cli import main
main(["doctor"])
"""


@pytest.mark.parametrize("name", ["click", "ranksvm.cli.output.errors", "ranksvm.cli.commands.doctor"])
def test_an_interrupt_while_the_program_is_imported(name):
    code = _INTERRUPTED_IMPORT.format(name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 130, done.stderr
    assert done.stderr.strip() == "Interrupted: unfinished files were not kept."
