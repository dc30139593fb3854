"""Workers that are killed, leave, restart or are added: the same bits; a lost scheduler: an error in time."""

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster, wait
from sklearn.base import clone
from sklearn.model_selection import GroupShuffleSplit

from ranksvm.dask import (
    DaskAdditiveRankSVM,
    DaskAdditiveRankSVMCV,
    DaskRankSVM,
    DaskRankSVMCV,
    choosing_ranker,
    evaluation,
    preparation,
)
from ranksvm.dask.backend import DaskBackend
from ranksvm.dask.cluster import LostError
from ranksvm.exceptions import ClusterError, DataError


def killed_at(client, number, monkeypatch, how=signal.SIGKILL):
    """Let a worker with a part end when a round of the next fit begins, while its tasks are under way."""
    plain, n_rounds = DaskBackend._sum, []

    def with_kill(self, jobs):
        n_rounds.append(1)
        if len(n_rounds) == number:
            owners = [workers for workers in client.who_has(self.parts).values() if workers]
            pid = client.run(os.getpid, workers=[owners[0][0]])[owners[0][0]]
            threading.Timer(0.005, os.kill, (pid, how)).start()
        return plain(self, jobs)

    monkeypatch.setattr(DaskBackend, "_sum", with_kill)
    return n_rounds


@pytest.fixture(scope="module")
def undisturbed(client, data, parts_of):
    X, y, qid = parts_of(data)
    return DaskRankSVM(C=0.05, n_partitions=4).fit(X, y, qid=qid)


def weights(fit):
    """The weights of the features; for an additive model, the weights of its linear part."""
    return fit.linear_coef_ if hasattr(fit, "linear_coef_") else fit.coef_


def test_a_killed_worker_costs_time_only(client, data, parts_of, undisturbed, monkeypatch):
    X, y, qid = parts_of(data)
    n_rounds = killed_at(client, 3, monkeypatch)
    fit = DaskRankSVM(C=0.05, n_partitions=4).fit(X, y, qid=qid)
    assert len(n_rounds) >= fit.n_rounds_ == undisturbed.n_rounds_
    np.testing.assert_array_equal(fit.coef_, undisturbed.coef_)
    assert fit.history_ == undisturbed.history_


def test_workers_that_leave_restart_and_join(client, data, parts_of, undisturbed, monkeypatch):
    """One is retired and another one starts in the middle of a fit; then all restart."""
    X, y, qid = parts_of(data)
    plain, n_rounds = DaskBackend._sum, []

    def with_changes(self, jobs):
        n_rounds.append(1)
        if len(n_rounds) == 2:
            client.cluster.scale(3)
        if len(n_rounds) == 4:
            client.retire_workers([next(iter(client.scheduler_info()["workers"]))])
        if len(n_rounds) == 6:
            client.restart_workers(list(client.scheduler_info()["workers"]), timeout=60)
        return plain(self, jobs)

    with monkeypatch.context() as patch:
        patch.setattr(DaskBackend, "_sum", with_changes)
        fit = DaskRankSVM(C=0.05, n_partitions=4).fit(X, y, qid=qid)
    np.testing.assert_array_equal(fit.coef_, undisturbed.coef_)
    client.cluster.scale(2)


def test_a_cluster_that_restarts_makes_its_data_again(client, data, parts_of, undisturbed, monkeypatch):
    X, y, qid = parts_of(data)
    plain, n_rounds = DaskBackend._sum, []

    def with_restart(self, jobs):
        n_rounds.append(1)
        if len(n_rounds) == 3:
            client.restart(wait_for_workers=False)  # the fit itself waits for them
        return plain(self, jobs)

    monkeypatch.setattr(DaskBackend, "_sum", with_restart)
    fit = DaskRankSVM(C=0.05, n_partitions=4).fit(X, y, qid=qid)
    np.testing.assert_array_equal(fit.coef_, undisturbed.coef_)


@pytest.mark.parametrize("number", [1, 2], ids=["data", "evaluation set"])
@pytest.mark.parametrize("ranker", [DaskRankSVM(C=0.05), DaskAdditiveRankSVM(C=0.05, max_bins=4)])
def test_a_preparation_begins_again_if_the_cluster_restarts(client, data, parts_of, monkeypatch, ranker, number):
    X, y, qid = parts_of(data)
    fit = clone(ranker).set_params(n_partitions=4)
    sets = {"eval_set": (X, y), "eval_qid": qid}
    undisturbed = clone(fit).fit(X, y, qid=qid, **sets)
    plain, calls = preparation.whole_parts, []

    def with_restart(*arguments):
        calls.append(1)
        if len(calls) == number:
            client.restart(wait_for_workers=False)  # the fit itself waits for them
        return plain(*arguments)

    monkeypatch.setattr(preparation, "whole_parts", with_restart)
    fit.fit(X, y, qid=qid, **sets)
    np.testing.assert_array_equal(weights(fit), weights(undisturbed))
    assert fit.evals_result_ == undisturbed.evals_result_


def test_persisted_data_that_were_lost_are_an_error(client, data, parts_of):
    X, y, qid = parts_of(data)
    X = X.persist()
    wait(X)
    client.restart()
    with pytest.raises(ClusterError, match="If you persisted or scattered the data, do that again first"):
        DaskRankSVM().fit(X, y, qid=qid)


@pytest.mark.parametrize("when", ["fit", "evaluation"])
@pytest.mark.parametrize(
    "ranker",
    [
        DaskRankSVM(C=0.05, n_partitions=4),
        DaskAdditiveRankSVM(C=0.05, n_partitions=4, max_bins=4, interactions="auto"),
    ],
    ids=["linear", "additive"],
)
def test_a_cluster_that_restarts_makes_evaluation_sets_again(client, data, parts_of, monkeypatch, ranker, when):
    X, y, qid = parts_of(data)
    sets = {"eval_set": [(X, y), (X[:300], y[:300])], "eval_qid": [qid, qid[:300]]}
    undisturbed = clone(ranker).fit(X, y, qid=qid, **sets)
    place, name = (DaskBackend, "_sum") if when == "fit" else (evaluation, "evaluated")
    plain, calls = getattr(place, name), []

    def with_restart(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            client.restart(wait_for_workers=False)  # the fit itself waits for them
        return plain(*arguments, **options)

    monkeypatch.setattr(place, name, with_restart)
    fit = clone(ranker).fit(X, y, qid=qid, **sets)
    assert fit.evals_result_ == undisturbed.evals_result_
    assert len(fit.evals_result_) == 2
    np.testing.assert_array_equal(weights(fit), weights(undisturbed))


def test_an_evaluation_set_that_is_always_lost_is_an_error(client, data, parts_of, monkeypatch):
    X, y, qid = parts_of(data)

    def lost(*arguments, **options):
        raise LostError("gone")

    monkeypatch.setattr(evaluation, "evaluated", lost)
    with pytest.raises(ClusterError, match="has lost the evaluation set valid_0 5 times in one evaluation"):
        DaskRankSVM(C=0.05).fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)


@pytest.mark.parametrize("choice", ["folds", "evaluation set", "additive"])
def test_a_choice_begins_again_if_the_cluster_restarts(client, data, parts_of, monkeypatch, choice):
    X, y, qid = parts_of(data)
    fit = DaskRankSVMCV(Cs=[0.01, 0.1], cv=2)
    sets = {"eval_set": (X, y), "eval_qid": qid} if choice == "evaluation set" else {}
    if choice == "additive":
        fit = DaskAdditiveRankSVMCV(Cs=[0.01, 0.1], step_weights=[1.0], cv=2, max_bins=4)
    undisturbed = clone(fit).fit(X, y, qid=qid, **sets)
    plain, calls = evaluation.evaluated, []

    def with_restart(*arguments, **options):
        calls.append(1)
        if len(calls) == 1:
            client.restart(wait_for_workers=False)  # the fit itself waits for them
        return plain(*arguments, **options)

    for module in (evaluation, choosing_ranker):
        monkeypatch.setattr(module, "evaluated", with_restart)
    fit.fit(X, y, qid=qid, **sets)
    assert len(calls) == (2 if choice == "evaluation set" else 3)
    np.testing.assert_array_equal(weights(fit), weights(undisturbed))
    np.testing.assert_array_equal(fit.mean_scores_, undisturbed.mean_scores_)
    assert fit.C_ == undisturbed.C_


def test_a_choice_by_folds_that_may_change_does_not_begin_again(client, data, parts_of, monkeypatch):
    X, y, qid = parts_of(data)
    plain = evaluation.evaluated

    def with_restart(*arguments, **options):
        client.restart(wait_for_workers=False)
        return plain(*arguments, **options)

    for module in (evaluation, choosing_ranker):
        monkeypatch.setattr(module, "evaluated", with_restart)
    splitter = GroupShuffleSplit(2, random_state=np.random.RandomState(0))
    with pytest.raises(ClusterError):
        DaskRankSVMCV(Cs=[0.01, 0.1], cv=splitter).fit(X, y, qid=qid)


@pytest.mark.parametrize(
    "ranker", [DaskRankSVM(), DaskRankSVMCV(cv=2), DaskAdditiveRankSVM(), DaskRankSVM(solver="dual")]
)
def test_a_fit_that_fails_frees_its_rows(client, data, parts_of, ranker):
    X, y, qid = parts_of(data)
    X[317, 4] = np.inf
    with pytest.raises(DataError, match="part 3: Input X contains infinity"):
        ranker.fit(X, y, qid=qid)
    stop = time.monotonic() + 10.0
    while client.futures and time.monotonic() < stop:
        gc.collect()  # the frames of an error refer to it
        time.sleep(0.1)
    assert not client.futures


@pytest.mark.parametrize(
    "ranker",
    [
        DaskRankSVM(),
        DaskRankSVMCV(Cs=[0.01], cv=2),
        DaskAdditiveRankSVM(interactions=1),
        DaskAdditiveRankSVMCV(Cs=[0.01], cv=2, step_weights=[1.0], interactions=[1]),
    ],
)
def test_a_fit_that_ends_frees_its_rows_at_once(client, data, parts_of, ranker):
    X, y, qid = parts_of(data)
    gc.collect()
    gc.disable()
    try:
        ranker.fit(X, y, qid=qid)
        stop = time.monotonic() + 5.0
        while client.futures and time.monotonic() < stop:
            time.sleep(0.1)
        assert not client.futures
    finally:
        gc.enable()


def test_a_fit_in_the_event_loop_is_refused_and_works_in_a_thread(data, parts_of, undisturbed):
    async def run():
        options = {"processes": False, "dashboard_address": ":0", "asynchronous": True}
        async with LocalCluster(n_workers=1, **options) as cluster, Client(cluster, asynchronous=True) as client:
            fit = DaskRankSVM(C=0.05, n_partitions=4)
            fit.client = client
            X, y, qid = parts_of(data)
            with pytest.raises(ClusterError, match="the Dask client is asynchronous"):
                fit.fit(X, y, qid=qid)
            return await asyncio.to_thread(fit.fit, X, y, qid=qid)

    np.testing.assert_array_equal(asyncio.run(run()).coef_, undisturbed.coef_)


SCHEDULER = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    options = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "silent"])
def test_a_lost_scheduler_ends_the_fit_in_time(data, parts_of, tmp_path, monkeypatch, how):
    """A process that is gone, and one that does not answer, as behind a network that is cut."""
    script = tmp_path / "scheduler.py"
    script.write_text(SCHEDULER)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().strip()
        with Client(address, set_as_default=False, timeout=60) as client:
            fit = DaskRankSVM(C=0.05, timeout=4.0)
            fit.client = client
            X, y, qid = parts_of(data)
            # that process imports what it needs while nothing is timed
            first = DaskRankSVM(C=0.05)
            first.client = client
            first.fit(X, y, qid=qid)
            lost = killed_at_scheduler(process, monkeypatch, how)
            with pytest.raises(ClusterError, match=rf"{address} has not answered for 4 seconds"):
                fit.fit(X, y, qid=qid)
            assert time.monotonic() - lost[0] < 10.0
            assert not hasattr(fit, "coef_")
            process.kill()
    finally:
        process.kill()
        process.wait()


def killed_at_scheduler(process, monkeypatch, how):
    plain, lost = DaskBackend._sum, []

    def with_loss(self, jobs):
        if not lost:
            lost.append(time.monotonic())
            process.send_signal(how)
        return plain(self, jobs)

    monkeypatch.setattr(DaskBackend, "_sum", with_loss)
    return lost


@pytest.mark.slow
def test_a_hundred_kills_at_random_rounds(client, data, parts_of, undisturbed, monkeypatch):
    X, y, qid = parts_of(data)
    rng = np.random.default_rng(0)
    for _ in range(100):
        with monkeypatch.context() as patch:
            killed_at(client, int(rng.integers(1, undisturbed.n_rounds_ + 1)), patch)
            fit = DaskRankSVM(C=0.05, n_partitions=4).fit(X, y, qid=qid)
        np.testing.assert_array_equal(fit.coef_, undisturbed.coef_)
        client.wait_for_workers(2, timeout=120)


@pytest.mark.slow
def test_a_worker_that_falls_silent(data, parts_of, undisturbed, monkeypatch):
    """As behind a network that is cut: the scheduler gives it up after its worker-ttl, and the fit goes on."""
    X, y, qid = parts_of(data)
    with (
        dask.config.set({"distributed.scheduler.worker-ttl": "5s", "distributed.scheduler.allowed-failures": 10}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        fit = DaskRankSVM(C=0.05, n_partitions=4)
        fit.client = client
        pids = client.run(os.getpid)
        killed_at(client, 3, monkeypatch, how=signal.SIGSTOP)
        try:
            fit.fit(X, y, qid=qid)
        finally:
            for pid in pids.values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        np.testing.assert_array_equal(fit.coef_, undisturbed.coef_)
