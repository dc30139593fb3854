"""Names that are imported on first use, and a fork meanwhile."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

_CHILDREN = """
import os, signal, sys, threading, time
import numpy as np
import ranksvm
X, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 3
if sys.argv[1] == "frame":
    import pandas
    from ranksvm import RankSVM
    X = pandas.DataFrame(X, columns=list("abcde"))

def fit():
    ranksvm.RankSVM(n_jobs=2).fit(X, y, group=[20, 20])

first, children = threading.Thread(target=fit), []
first.start()
while first.is_alive() and len(children) < 10:
    time.sleep(0.02 if sys.argv[1] == "array" else 0.002)
    child = os.fork()
    if child == 0:
        signal.alarm(90)  # ends a child that hangs
        fit()
        os._exit(0)
    children.append(child)
first.join()
failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
print(len(children), len(failed))
"""


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_children_forked_during_the_first_fit_of_another_thread(kind):
    """They waited for ever for modules that the thread was importing: 40 of 40 children, and 12 of 20 with a frame."""
    command = [sys.executable, "-W", "ignore", "-c", _CHILDREN, kind]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (found.returncode, found.stderr) == (0, "")
    children, failed = map(int, found.stdout.split())
    assert children >= 1
    assert failed == 0


def test_a_fork_in_an_import_of_its_own_does_not_wait(tmp_path, monkeypatch):
    (tmp_path / "forking.py").write_text(
        "import os\nchild = os.fork()\nif not child: os._exit(0)\nos.waitpid(child, 0)\n"
    )
    code = "import time; from ranksvm._util.lazy import imported; start = time.monotonic(); imported('forking'); "
    code += "print(time.monotonic() - start < 10)"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "True\n"
