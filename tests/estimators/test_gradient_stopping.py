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

    Round-off decides whether the 7th one meets the rule already, which has 82.67 % and 0.4580: it does with AVX2, and
    with the sums of two threads.
    """
    folder = shared_data / "MQ2008" / "Fold1"
    train, test = (read_letor(folder / f"{part}.txt.gz", docids=False) for part in ("train", "test"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(train, C=2.0**7, tol=1e-3, n_jobs=1)
    assert model.n_iter_ in (7, 8)
    names = ["pairwise_accuracy", "mean_ndcg"]
    found = metrics.evaluate(test.y, model.predict(test.X), test.qid, names, convention="letor").means
    # conjugate gradients amplify round-off: sums in another order give up to 82.71 % and 0.4580
    assert 100 * found["pairwise_accuracy"] == pytest.approx(82.70, abs=0.04)
    assert found["mean_ndcg"] == pytest.approx(0.4571, abs=1e-3)
