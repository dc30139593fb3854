"""The threads that run compiled work."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import ranksvm._compiled.threads as threads
from scipy.sparse import csr_array

from ranksvm import (
    AdditiveRankSVM,
    FactorizedRankSVM,
    KernelRankSVM,
    RankSVM,
    RankSVMCV,
    SOLARRanker,
    load,
    make_ranking,
)
from ranksvm._util.threads import parallel_map
from ranksvm.metrics import evaluate

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


@pytest.fixture(scope="module")
def jobs(data, tmp_path_factory):
    """Work that a server may do in any of its threads: name -> function without arguments that returns an array."""
    small = make_ranking(n_queries=20, n_docs=15, n_features=6, random_state=1)
    path = tmp_path_factory.mktemp("threads") / "model.rsvm"
    few = {"X": small.X, "y": small.y, "qid": small.qid}
    many = {"X": data.X, "y": data.y, "qid": data.qid}
    fitted = RankSVM(C=0.1).fit(**many)
    fitted.save(path)
    additive = AdditiveRankSVM(max_bins=8).fit(**few)
    kernel = KernelRankSVM(gamma=0.5).fit(**few)

    def measured():
        return evaluate(data.y, fitted.predict(data.X), data.qid, "ndcg@10").per_query["ndcg@10"]

    def learned():
        return SOLARRanker(2, random_state=0).partial_fit(**few).coef_

    def explained():
        return np.asarray(fitted.explain(data.X[:5], data.qid[:5]).contributions)

    return {
        "fit": lambda: RankSVM(C=0.1, n_jobs=2).fit(**many).coef_,
        "fit, float32 and hinge": lambda: RankSVM(loss="hinge").fit(**few | {"X": small.X.astype(np.float32)}).coef_,
        "fit, logistic": lambda: RankSVM(loss="logistic", n_jobs=2).fit(**few).coef_,
        "fit, sparse": lambda: RankSVM(solver="dual").fit(**few | {"X": csr_array(small.X)}).coef_,
        "fit, kernel": lambda: KernelRankSVM(gamma=0.5).fit(**few).dual_coef_,
        "fit, additive": lambda: AdditiveRankSVM(max_bins=8, interactions=2).fit(**few).predict(small.X),
        "fit, factors": lambda: FactorizedRankSVM(random_state=0).fit(**few).predict(small.X),
        "C": lambda: RankSVMCV(Cs=3, cv=2).fit(**few).coef_,
        "learn": learned,
        "predict": lambda: fitted.predict(data.X),
        "predict, additive": lambda: additive.predict(small.X),
        "predict, kernel": lambda: kernel.predict(small.X),
        "load": lambda: load(path).predict(data.X),
        "measure": measured,
        "explain": explained,
    }


def test_threads_that_fit_predict_and_learn_at_once_get_what_one_thread_gets(jobs):
    expected = {name: work() for name, work in jobs.items()}
    found, begin = [], threading.Barrier(6)

    def rounds(first):
        order = [*jobs][first:] + [*jobs][:first]
        begin.wait()
        for name in order * 2:
            found.append((name, jobs[name]()))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # where there is a global lock, threads change places as often as they can
    try:
        callers = [threading.Thread(target=rounds, args=(2 * n,), daemon=True) for n in range(6)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(120)
    finally:
        sys.setswitchinterval(before)
    assert len(found) == 6 * 2 * len(jobs)
    for name, values in found:
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
