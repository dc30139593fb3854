"""Bounds on what online learning loses: they hold, against fixed models good and bad, and are what is said of them."""

import numpy as np
import pytest
import scipy.sparse as sp

from oracle import ExplicitPairs
from ranksvm import RankSVM, SOLARRanker, make_ranking, read_letor
from ranksvm.analysis import online_bounds
from ranksvm.exceptions import DataError, OptionError

RANKERS = [SOLARRanker(1, C=C, random_state=0) for C in (1e-5, 1e-2, 10.0)]
RANKERS += [SOLARRanker(2, gamma=gamma, random_state=0) for gamma in (1e4, 10.0, 1e-2)]


def hindsight_C(ranker):
    return ranker.C if ranker.order == 1 else 0.5 / ranker.gamma


def comparators(ranker, data):
    """The best model in hindsight, the same longer and shorter, nothing, and random ones."""
    best = RankSVM(C=hindsight_C(ranker), tol=1e-9).fit(data.X, data.y, qid=data.qid).coef_
    rng = np.random.default_rng(0)
    yield from (best, 3.0 * best, 0.3 * best, -best, np.zeros_like(best))
    yield from (scale * rng.normal(size=len(best)) for scale in (0.1, 1.0, 10.0))


def assert_holds(ranker, data):
    for u in comparators(ranker, data):
        found = online_bounds(ranker, data.X, data.y, qid=data.qid, comparator=u)
        assert np.all(found.loss <= found.bound * (1 + 1e-9))
        assert np.all(np.diff(found.loss) >= 0.0)
        np.testing.assert_array_equal(found.regret, found.loss - found.comparator_loss)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: f"{ranker.order}-{ranker.C}-{ranker.gamma}")
@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_the_bounds_hold_on_made_data(ranker, noise):
    assert_holds(ranker, make_ranking(40, (1, 12), 6, noise=noise, dtype=np.float64, random_state=1))


@pytest.mark.parametrize("ranker", [RANKERS[0], RANKERS[3]], ids=["first", "second"])
def test_the_bounds_hold_on_real_data(ranker, shared_data):
    data = read_letor(shared_data / "MQ2008" / "Fold1" / "vali.txt.gz", docids=False)
    assert_holds(ranker, data)


def test_no_model_makes_the_first_bound_smaller_than_RankSVM_does():
    """It is (2 C max |z|^2 + 1) / C times RankSVM's objective."""
    data = make_ranking(20, 10, 4, dtype=np.float64, random_state=0)
    problem = ExplicitPairs(data.y, data.qid, data.X)
    square = np.max(np.sum((problem.X[problem.upper] - problem.X[problem.lower]) ** 2, axis=1))
    best = RankSVM(C=0.01, tol=1e-10).fit(data.X, data.y, qid=data.qid)
    ranker = SOLARRanker(C=0.01, random_state=0)
    found = online_bounds(ranker, data.X, data.y, qid=data.qid, comparator=best.coef_)
    assert found.comparator_loss[-1] == pytest.approx(problem.loss(data.X @ best.coef_))
    assert found.bound[-1] == pytest.approx((2 * 0.01 * square + 1) / 0.01 * best.objective_)
    for step in np.random.default_rng(0).normal(size=(20, 4)):
        other = online_bounds(ranker, data.X, data.y, qid=data.qid, comparator=best.coef_ + 0.1 * step)
        assert other.bound[-1] > found.bound[-1]


def test_the_second_bound_from_explicit_pairs():
    """Its terms by hand, from the pairs that were learnt from; and the identity behind it."""
    data = make_ranking(15, 8, 4, dtype=np.float64, random_state=0)
    u, gamma = np.array([0.5, -1.0, 0.2, 0.0]), 2.0
    model, hinges, learnt, parts = SOLARRanker(2, gamma=gamma), [], [], []
    for query in np.unique(data.qid):
        X, y = data.X[data.qid == query], data.y[data.qid == query]
        order = np.argsort(-y, kind="stable")
        for i, j in [(i, j) for i in order for j in order if y[i] > y[j]]:
            z, known = X[i] - X[j], hasattr(model, "weights_")
            S, w = (model.covariance_, model.weights_.copy()) if known else (np.eye(4), np.zeros(4))
            h = 1.0 - w @ z
            model.partial_fit_pairs(X, [(i, j)])
            if h > 0.0:
                hinges.append(h)
                learnt.append(z)
                parts.append(h**2 / (1.0 + z @ S @ z / gamma))
    Z, A = np.array(learnt), np.eye(4) + np.array(learnt).T @ np.array(learnt) / gamma
    ridge = np.linalg.solve(gamma * A, Z.sum(axis=0))
    np.testing.assert_allclose(model.weights_, ridge, rtol=1e-9)
    assert sum(parts) == pytest.approx(gamma * ridge @ ridge + np.sum((1 - Z @ ridge) ** 2))
    bound = gamma * u @ u + np.sum((1 - Z @ u) ** 2) + max(hinges) ** 2 * np.linalg.slogdet(A)[1]
    ranker = SOLARRanker(2, gamma=gamma, shuffle_pairs=False)
    found = online_bounds(ranker, data.X, data.y, qid=data.qid, comparator=u)
    assert found.loss[-1] == pytest.approx(np.sum(np.square(hinges)))
    assert found.bound[-1] == pytest.approx(bound)


@pytest.mark.parametrize("order", [1, 2])
def test_it_follows_the_learner_itself(order):
    data = make_ranking(15, (1, 8), 4, density=0.5, random_state=0)
    ranker = SOLARRanker(order, C=0.1, gamma=3.0, random_state=0, n_passes=4)
    model = SOLARRanker(order, C=0.1, gamma=3.0, random_state=0)
    losses = [
        model.partial_fit(data.X[data.qid == q], data.y[data.qid == q]).cumulative_loss_ for q in np.unique(data.qid)
    ]
    for X in (data.X, sp.csr_array(data.X)):
        found = online_bounds(ranker, X, data.y, qid=data.qid, comparator=np.ones(4))
        np.testing.assert_allclose(found.loss, losses, rtol=1e-9)
    assert not hasattr(ranker, "weights_")


@pytest.mark.parametrize("options", [{"decay": 0.9}, {"covariance": "diagonal"}])
def test_learners_without_a_bound_are_refused(options):
    data = make_ranking(3, 5, 4, random_state=0)
    with pytest.raises(OptionError, match="bounds hold for"):
        online_bounds(SOLARRanker(2, **options), data.X, data.y, qid=data.qid, comparator=np.ones(4))


@pytest.mark.parametrize("comparator", [np.ones(3), np.ones((1, 4)), [1.0, 2.0, np.nan, 0.0]])
def test_comparators_are_checked(comparator):
    data = make_ranking(3, 5, 4, random_state=0)
    with pytest.raises(DataError, match="comparator must have one finite number"):
        online_bounds(SOLARRanker(), data.X, data.y, qid=data.qid, comparator=comparator)
