"""The threads that run compiled work."""

import os
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
import ranksvm._compiled.threads as threads

from ranksvm import RankSVM, make_ranking
from ranksvm._util.threads import parallel_map

FOLDER = Path(__file__).parents[1] / "src" / "ranksvm" / "_compiled"


@pytest.mark.parametrize("sanitizer", ["", "thread", "address,undefined"])
def test_the_pool(tmp_path, sanitizer):
    """Order, errors, nesting, several callers, and a fork, in C++."""
    if shutil.which("c++") is None or os.name != "posix":
        pytest.skip("no C++ compiler of a POSIX system here")
    program, source = tmp_path / "program", Path(__file__).parent / "thread_pool.cpp"
    checked = [f"-fsanitize={sanitizer}"] if sanitizer else []
    command = ["c++", "-std=c++17", "-O1", "-pthread", *checked, "-I", str(FOLDER), str(source), "-o", str(program)]
    if subprocess.run(command, capture_output=bool(sanitizer)).returncode and sanitizer:
        pytest.skip(f"the C++ compiler has no sanitizer for {sanitizer}")
    environment = {**os.environ, "TSAN_OPTIONS": "die_after_fork=0"}
    found = subprocess.run([str(program)], capture_output=True, text=True, timeout=120, env=environment)
    if sanitizer and "unexpected memory mapping" in found.stderr:
        pytest.skip("this kernel places memory where the sanitizer does not expect it")
    assert (found.stdout, found.returncode) == ("passed\n", 0), found.stderr


def test_tasks_of_python_and_compiled_ones_know_of_each_other():
    assert not threads.in_task()
    assert parallel_map(lambda _: threads.in_task(), range(4), 2) == [True] * 4
    assert not threads.in_task()


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=300, n_docs=40, n_features=30, random_state=0)


def test_fits_in_several_threads_share_the_pool(data):
    expected = RankSVM(C=0.1, n_jobs=3).fit(data.X, data.y, qid=data.qid).coef_
    found = []

    def fit():
        found.append(RankSVM(C=0.1, n_jobs=3).fit(data.X, data.y, qid=data.qid).coef_)

    callers = [threading.Thread(target=fit, daemon=True) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert len(found) == 4
    for coef in found:
        np.testing.assert_array_equal(coef, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_fits_with_threads_of_its_own(data):
    coef = RankSVM(C=0.1, n_jobs=2).fit(data.X, data.y, qid=data.qid).coef_
    child = os.fork()
    if child == 0:
        same = False
        try:
            same = np.array_equal(coef, RankSVM(C=0.1, n_jobs=2).fit(data.X, data.y, qid=data.qid).coef_)
        finally:
            os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
