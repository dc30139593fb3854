"""Snapshots of models that another thread teaches: each is the model between two queries."""

import os
import pickle
import signal
import sys
import threading

import joblib
import numpy as np
import pytest
import sklearn

import ranksvm
from ranksvm.estimators.base import undo
from ranksvm.exceptions import DataError

MODELS = [
    ranksvm.SOLARRanker(average=True, random_state=0),
    ranksvm.SOLARRanker(2, random_state=0),
    ranksvm.PRanker([0, 1, 2, 3, 4], random_state=0),
    ranksvm.PerceptronCommitteeRanker(3, random_state=0),
]


@pytest.mark.parametrize("model", MODELS)
def test_a_snapshot_is_the_model_between_two_queries(model):
    data = ranksvm.make_ranking(n_queries=200, n_docs=20, n_features=64, random_state=0)
    expected = {}
    for _, rows in data.queries:
        model.partial_fit(data.X[rows], data.y[rows])
        expected[model.n_queries_] = model.coef_.copy()
    learner = type(model)(**model.get_params())
    learner.partial_fit(data.X[data.queries.rows(0)], data.y[data.queries.rows(0)])
    rest = data.select(np.arange(len(data.queries.rows(0)), len(data)))
    thread = threading.Thread(target=learner.partial_fit, args=(rest.X, rest.y), kwargs={"qid": rest.qid})
    thread.start()
    copies = []
    while thread.is_alive():
        copies.append(learner.snapshot())
    thread.join()
    copies.append(learner.snapshot())
    assert copies[-1].n_queries_ == 200
    for copied in copies:
        np.testing.assert_array_equal(copied.coef_, expected[copied.n_queries_])
        assert copied.n_features_in_ == 64


def test_a_snapshot_does_not_learn_on_and_models_can_be_pickled():
    X, y = np.eye(3), [2, 1, 0]
    model = ranksvm.SOLARRanker().partial_fit(X, y)
    copied = model.snapshot()
    weights = copied.coef_.copy()
    model.partial_fit(X[::-1], y)
    np.testing.assert_array_equal(copied.coef_, weights)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).coef_, model.coef_)
    assert not hasattr(ranksvm.SOLARRanker().snapshot(), "weights_")


@pytest.mark.parametrize("model", MODELS)
def test_a_model_mapped_read_only_from_a_pickle_learns(model, tmp_path):
    X, y = np.eye(3), [2, 1, 0]
    learned = sklearn.clone(model).partial_fit(X, y)
    joblib.dump(learned, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r").partial_fit(X, y)
    np.testing.assert_array_equal(mapped.coef_, learned.partial_fit(X, y).coef_)


@pytest.mark.filterwarnings("ignore::ranksvm.exceptions.ScaleWarning")
def test_no_snapshot_has_numbers_that_overflowed(monkeypatch):
    model = ranksvm.PairwisePerceptronRanker().partial_fit(np.eye(2), [1, 0])
    before, taken, threads, all_finite = model.coef_.copy(), [], [], undo._all_finite

    def all_finite_while_another_thread_copies(values):
        threads.append(threading.Thread(target=lambda: taken.append(model.snapshot())))
        threads[-1].start()
        threads[-1].join(0.1)
        return all_finite(values)

    monkeypatch.setattr(undo, "_all_finite", all_finite_while_another_thread_copies)
    with pytest.raises(DataError, match="overflows"):
        model.partial_fit(1.5e308 * (1 - 2 * np.eye(2)), [1, 0])
    for thread in threads:
        thread.join()
    assert len(taken) > 0
    for copied in taken:
        np.testing.assert_array_equal(copied.coef_, before)


def test_a_model_that_refuses_data_never_lacks_its_weights():
    """Another thread may rank with it after any line."""
    model = ranksvm.SOLARRanker().partial_fit(np.eye(3), [2, 1, 0])
    weights, found, traced = model.weights_, [], sys.gettrace()

    def at_each_line(*_):
        found.append(vars(model).get("weights_"))
        return at_each_line

    sys.settrace(at_each_line)
    try:
        with pytest.raises(DataError, match="infinity"):
            model.partial_fit(np.full((3, 3), np.inf), [2, 1, 0])
    finally:
        sys.settrace(traced)
    assert len(found) > 0
    assert all(array is weights for array in found)


def test_attributes_that_another_thread_adds_do_not_disturb_a_snapshot():
    model, traced = ranksvm.SOLARRanker().partial_fit(np.eye(3), [2, 1, 0]), sys.gettrace()

    def at_each_instruction(frame, *_):
        frame.f_trace_opcodes = True
        setattr(model, f"added_{len(vars(model))}", 0)
        return at_each_instruction

    sys.settrace(at_each_instruction)
    try:
        copied = model.snapshot()
    finally:
        sys.settrace(traced)
    np.testing.assert_array_equal(copied.weights_, model.weights_)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_forked_while_a_thread_learns_has_the_model_between_two_queries():
    data = ranksvm.make_ranking(n_queries=200, n_docs=40, n_features=64, random_state=0)
    expected, model = {}, ranksvm.SOLARRanker(2, random_state=0)
    for _, rows in data.queries:
        model.partial_fit(data.X[rows], data.y[rows])
        expected[model.n_queries_] = model.coef_.copy()
    learner, stop = ranksvm.SOLARRanker(2, random_state=0).partial_fit(data.X[:40], data.y[:40]), threading.Event()

    def learn():
        while not stop.is_set():
            learner.fit(data.X, data.y, qid=data.qid)

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                same = False
                try:
                    copied = learner.snapshot()
                    same = np.array_equal(copied.coef_, expected.get(copied.n_queries_, np.zeros(64)))
                    learner.partial_fit(data.X[:40], data.y[:40])
                finally:
                    os._exit(0 if same else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
