"""Fits in words, in notebooks, too."""

import math

import numpy as np
import pytest
import sklearn

import ranksvm
from ranksvm.estimators.base.summary import certificate_in_words, described_fit, fit_facts


@pytest.fixture(scope="module")
def data():
    return ranksvm.make_ranking(20, n_docs=8, n_features=3, random_state=0)


def fitted(ranker, data):
    return ranker.fit(data.X, data.y, qid=data.qid)


def test_the_distance_that_a_certificate_proves(data):
    ranker = fitted(ranksvm.RankSVM(tol=1e-2), data)
    exact = fitted(ranksvm.RankSVM(tol=1e-12), data)
    bound = math.sqrt(2 * ranker.duality_gap_)
    assert np.linalg.norm(ranker.coef_ - exact.coef_) <= bound
    words = certificate_in_words(ranker)
    assert f"lower by more than {ranker.duality_gap_:.3g} " in words
    assert f"the distance of the weight vector from the optimal one is at most {bound:.3g}." in words


def test_a_fit_that_stopped_early_says_so(data):
    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        ranker = fitted(ranksvm.RankSVM(tol=1e-10, max_iter=1), data)
    assert certificate_in_words(ranker).endswith("This does not meet the tolerance of the fit.")


@pytest.mark.parametrize(
    ("ranker", "words"),
    [
        (ranksvm.FactorizedRankSVM(), "not convex"),
        (ranksvm.SOLARRanker(), "one query after another"),
        (ranksvm.RegularizedRankSVM(), "no model of this kind has an objective lower"),
        (ranksvm.KernelRankSVM(gamma=0.1), "the distance of the scoring function"),
        (ranksvm.AdditiveRankSVM(), "the distance of the scoring function"),
    ],
)
def test_what_is_proven_of_other_models(ranker, words, data):
    assert words in certificate_in_words(fitted(ranker, data))


def test_what_is_proven_of_an_edited_model(data):
    ranker = fitted(ranksvm.AdditiveRankSVM(C=0.1), data)
    edited = ranker.edit_shape(0, {1: 0.5}, data.X, data.y, qid=data.qid)
    edited = edited.edit_shape(1, {1: 0.5}, data.X, data.y, qid=data.qid)
    words = certificate_in_words(edited)
    assert f"The objective is {edited.objective_:.10g}" in words
    assert words.endswith(f"by hand; the objective was {ranker.objective_:.10g} before.")
    unknown = certificate_in_words(ranker.edit_shape(0, {1: 0.5}))
    assert unknown.startswith("Shapes were edited by hand, without the training data")


def test_facts(data):
    facts = dict(fit_facts(described_fit(fitted(ranksvm.RankSVMCV(Cs=[0.5, 1.0], cv=2), data))))
    assert facts["C chosen"].startswith(("0.5 = 2^-1, by ndcg@10 0.", "1, by ndcg@10 0."))
    assert facts["trained on"].endswith("pairs of 20 queries")
    assert dict(fit_facts(described_fit(fitted(ranksvm.PRanker(), data))))["trained on"].startswith("160 documents")


@pytest.mark.parametrize("ranker", [ranksvm.RankSVM(), ranksvm.KernelRankSVM(gamma=0.1), ranksvm.SOLARRanker()])
def test_a_notebook_shows_the_fit_below_the_parameters(ranker, data):
    ranker = sklearn.clone(ranker)
    assert "trained on" not in ranker._repr_html_()
    fitted(ranker, data)
    shown = ranker._repr_mimebundle_()
    assert shown["text/plain"] == repr(ranker)
    assert "sk-" in shown["text/html"]
    assert "trained on" in shown["text/html"]
    with sklearn.config_context(display="text"):
        assert ranker._repr_html_().startswith("<table")
        assert sklearn.clone(ranker)._repr_html_() is None
        assert sklearn.clone(ranker)._repr_mimebundle_() == {"text/plain": repr(ranker)}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "poly", "gamma": 0.25, "degree": 2, "coef0": 0.5}, "poly gamma 2^-2, degree 2, coef0 0.5"),
        ({"kernel": "rbf", "gamma": 0.1}, "rbf gamma 0.1"),
        ({"kernel": "cosine", "approximation": "nystroem"}, "cosine, approximated by nystroem"),
    ],
)
def test_a_kernel_in_words(options, words, data):
    assert dict(fit_facts(described_fit(fitted(ranksvm.KernelRankSVM(0.1, **options), data))))["kernel"] == words
