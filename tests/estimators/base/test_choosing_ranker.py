"""What choosing estimators hold in memory while they choose: the matrix, or features, of one setting at a time."""

import weakref
from functools import partial

import pytest

from ranksvm import KernelRankSVMCV, RankSVMCV, make_ranking
from ranksvm.fits import kernel

DATA = make_ranking(n_queries=12, n_docs=6, n_features=4, random_state=0)
VALIDATION = make_ranking(n_queries=6, n_docs=6, n_features=4, random_state=1)


@pytest.fixture(params=["kernel_matrix", "feature_design"])
def made(request, monkeypatch):
    """How many were there already whenever another one was made (by one thread: others let go a little later)."""
    original, known, alive = getattr(kernel, request.param), [], []

    def make(*args, **options):
        alive.append(sum(reference() is not None for reference in known))
        result = original(*args, **options)
        known.append(weakref.ref(result))
        return result

    monkeypatch.setattr(kernel, request.param, make)
    return request.param, alive


@pytest.mark.parametrize("by", ["validation", "folds"])
def test_one_at_a_time(made, by):
    name, alive = made
    approximation = "nystroem" if name == "feature_design" else None
    model = KernelRankSVMCV(
        [0.01, 1.0], [0.1, 0.5], cv=2, approximation=approximation, n_components=10, n_jobs=1, random_state=0
    )
    sets = {"eval_set": [(VALIDATION.X, VALIDATION.y)], "eval_qid": [VALIDATION.qid]} if by == "validation" else {}
    model.fit(DATA.X, DATA.y, qid=DATA.qid, **sets)
    assert alive == [0] * (2 if by == "validation" else 5)


@pytest.mark.parametrize("estimator", [RankSVMCV, partial(KernelRankSVMCV, gammas=[0.1])])
def test_the_width_is_that_of_the_chosen_solution(estimator):
    # the choice is on the first set, and the width narrows along C
    sets = {"eval_set": [(VALIDATION.X, VALIDATION.y)], "eval_qid": [VALIDATION.qid]}
    chosen = estimator([1e-6, 1.0, 100.0], loss="hinge", rule="one_standard_error").fit(
        DATA.X, DATA.y, qid=DATA.qid, **sets
    )
    alone = estimator([chosen.C_], loss="hinge").fit(DATA.X, DATA.y, qid=DATA.qid, **sets)
    assert chosen.C_ == 1e-6
    assert chosen.width_ == alone.width_
