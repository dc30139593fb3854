"""``stopping="gradient"``: the published rule, for published models."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import ranksvm
from oracle import ExplicitPairs
from ranksvm import RankSVM, make_ranking, metrics, read_letor
from ranksvm.exceptions import OptionError


@pytest.fixture(scope="module")
def data():
    return make_ranking(12, (1, 30), 6, n_levels=4, dtype=np.float64, random_state=0)


def fitted(data, **options):
    return RankSVM(**{"C": 10.0, "solver": "tron", "stopping": "gradient", **options}).fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize("options", [{}, {"loss": "huber"}, {"pair_weighting": "label_gap"}])
def test_the_gradient_is_as_small_as_asked_for_and_the_certificate_stays(data, options):
    tol = 1e-3
    model = fitted(data, tol=tol, **options)
    at_zero = np.sqrt(2 * model.history_["duality_gap"][0])
    assert model.converged_
    assert np.sqrt(2 * model.duality_gap_) <= tol * at_zero < np.sqrt(2 * model.history_["duality_gap"][-2])
    assert "|gradient| <= tol" in model.status_
    optimum = RankSVM(10.0, tol=1e-10, **options).fit(data.X, data.y, qid=data.qid).objective_
    assert optimum * (1 - 1e-9) <= model.objective_ <= optimum + model.duality_gap_


def test_the_gradient_is_that_of_explicit_pairs(data):
    model = fitted(data, tol=1e-2)
    oracle = ExplicitPairs(data.y, data.qid, data.X)
    ratio = np.linalg.norm(oracle.gradient(model.coef_, 10.0)) / np.linalg.norm(oracle.gradient(np.zeros(6), 10.0))
    assert ratio <= 1e-2
    assert model.duality_gap_ == pytest.approx(0.5 * np.linalg.norm(oracle.gradient(model.coef_, 10.0)) ** 2, rel=1e-9)


def test_a_warm_start_at_a_model_that_meets_the_rule_stays_there(data):
    model = fitted(data, tol=1e-3, warm_start=True)
    coef = model.coef_.copy()
    model.fit(data.X, data.y, qid=data.qid)
    assert model.n_iter_ == 0
    assert model.converged_
    np.testing.assert_array_equal(model.coef_, coef)


def test_max_iter_warns(data):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = fitted(data, tol=1e-9, max_iter=2)
    assert not model.converged_
    assert model.n_iter_ == 2


@pytest.mark.parametrize("solver", ["auto", "newton", "dual"])
def test_other_solvers_refuse(data, solver):
    with pytest.raises(OptionError, match=f"published rule of solver='tron', not of solver='{solver}'"):
        fitted(data, solver=solver)


def test_the_hinge_and_other_rules_are_refused(data):
    with pytest.raises(OptionError, match="the hinge has none"):
        fitted(data, loss="hinge")
    with pytest.raises(OptionError, match="stopping must be one of 'gap', 'gradient', got 'grad'"):
        fitted(data, stopping="grad")


def test_saved_and_loaded(data, tmp_path):
    model = fitted(data)
    model.save(tmp_path / "model")
    loaded = ranksvm.load(tmp_path / "model")
    assert (loaded.stopping, loaded.status_) == ("gradient", model.status_)


def test_the_published_model(shared_data):
    """Lee & Lin, Neural Computation 26 (2014), MQ2008 fold 1 at C = 2^7: 82.70 % and 0.4571, the 8th iterate.

    Round-off decides the last two steps: conjugate gradients amplify it, so sums in another order (other queries first,
    other columns first, another processor) take 61 or 62 products to the 7th iterate, which may meet the rule already
    (82.67 % and 0.4580), and 81 to 94 to the 8th. The order that comes closest gives the published digits, and the
    median of the orders is near them.
    """
    folder = shared_data / "MQ2008" / "Fold1"
    train, test = (read_letor(folder / f"{part}.txt.gz", docids=False) for part in ("train", "test"))
    names = ["pairwise_accuracy", "mean_ndcg"]
    rng = np.random.default_rng(0)
    found = []
    for _ in range(25):
        columns = rng.permutation(train.n_features)
        queries = np.split(np.arange(train.n_rows), np.flatnonzero(np.diff(train.qid)) + 1)
        rows = np.concatenate([queries[place] for place in rng.permutation(len(queries))])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = RankSVM(2.0**7, solver="tron", stopping="gradient", tol=1e-3, n_jobs=1)
            model.fit(train.X[rows][:, columns], train.y[rows], qid=train.qid[rows])
        assert model.n_iter_ in (7, 8)
        scores = model.predict(test.X[:, columns])
        means = metrics.evaluate(test.y, scores, test.qid, names, convention="letor").means
        found.append((100 * means["pairwise_accuracy"], means["mean_ndcg"]))
    accuracy, ndcg = np.transpose(found)
    assert np.median(accuracy) == pytest.approx(82.70, abs=0.04)
    assert np.median(ndcg) == pytest.approx(0.4571, abs=1e-3)
    np.testing.assert_allclose(accuracy, 82.70, atol=0.25)
    np.testing.assert_allclose(ndcg, 0.4571, atol=2e-3)
    assert ((np.abs(accuracy - 82.70) < 0.005) & (np.abs(ndcg - 0.4571) < 5e-5)).any()
