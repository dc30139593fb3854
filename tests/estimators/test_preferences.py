"""Preferences instead of X and pairs: in fit, score, eval_set, searches of C and the path along C."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from oracle import ExplicitPairs
from ranksvm import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    FactorizedRankSVM,
    KernelRankSVM,
    KernelRankSVMCV,
    Preferences,
    QueryKFold,
    RankSVM,
    RankSVMCV,
    RegularizedRankSVM,
    SOLARRanker,
    make_ranking,
    regularization_path,
)
from ranksvm.exceptions import DataError, OptionError

PAIRWISE = "pairwise_accuracy"


def made(n_pairs=120, n_features=6, seed=0, dtype=np.float64, **options):
    random = np.random.default_rng(seed)
    rejected = random.normal(size=(n_pairs, n_features))
    chosen = random.normal(size=(n_pairs, n_features)) + np.linspace(0.6, 0.0, n_features)
    return Preferences(chosen.astype(dtype), rejected.astype(dtype), prompt=np.arange(n_pairs) // 3, **options)


def accuracy(model, data):
    right = model.predict(data.chosen) > model.predict(data.rejected)
    return np.average(right, weights=data.weight)


@pytest.mark.parametrize("solver", ["newton", "tron", "dual"])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_fit_is_that_of_stacked_rows(solver, loss, dtype):
    data = made(dtype=dtype, weight=np.random.default_rng(1).random(120))
    options = {"C": 0.1, "tol": 1e-8, "solver": solver, "loss": loss}
    two = RankSVM(**options).fit(data)
    one = RankSVM(**options).fit(data.X, pairs=data.pairs, pair_weight=data.weight, qid=data.qid)
    assert two.objective_ == pytest.approx(one.objective_, rel=1e-7)
    np.testing.assert_allclose(two.coef_, one.coef_, atol=1e-3)
    assert (two.n_pairs_, two.n_queries_, two.n_features_in_) == (120, 40, 6)
    if loss == "squared_hinge":
        slow = ExplicitPairs(None, data.qid, data.X.astype(float), pairs=data.pairs, pair_weight=data.weight)
        assert two.objective_ == pytest.approx(slow.value(two.coef_, 0.1), rel=1e-10)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_large_blocks_are_read_by_threads(n_threads):
    data = made(6000, 24, dtype=np.float32)
    two = RankSVM(C=1e-3, tol=1e-8, n_jobs=n_threads).fit(data)
    one = RankSVM(C=1e-3, tol=1e-8, n_jobs=n_threads).fit(data.X, pairs=data.pairs, qid=data.qid)
    np.testing.assert_allclose(two.coef_, one.coef_, rtol=1e-6, atol=1e-9)


def test_features_are_not_copied():
    data = made(3000, 256)
    features = data.chosen.nbytes + data.rejected.nbytes
    stacked = data.X

    def peak(model, *X, **arguments):
        tracemalloc.start()
        model.fit(*X, **arguments)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    # beyond what a fit to one array takes, which has no copy either; one thread, whose memory is the same in every run
    solver = peak(RankSVM(C=1e-3, n_jobs=1), stacked, pairs=data.pairs, qid=data.qid)
    assert peak(RankSVM(C=1e-3, n_jobs=1), data) < solver + 0.05 * features
    # a fold's test part is copied a chunk at a time: here a fifth of the rows
    assert peak(RankSVMCV(Cs=[1e-4, 1e-3], n_jobs=1), data) < solver + 0.25 * features


@pytest.mark.parametrize("form", [pd.DataFrame, sp.csr_array, lambda X: X.astype(np.float32), np.asfortranarray])
def test_features_of_other_kinds_are_converted(form):
    data = made()
    expected = RankSVM(C=0.1, tol=1e-9).fit(data)
    found = RankSVM(C=0.1, tol=1e-9).fit(Preferences(form(data.chosen), form(data.rejected), prompt=data.prompt))
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-4)
    mixed = RankSVM(C=0.1, tol=1e-9).fit(Preferences(data.chosen, form(data.rejected), prompt=data.prompt))
    np.testing.assert_allclose(mixed.coef_, expected.coef_, atol=1e-4)


def test_names_of_features():
    data = made()
    names = list("abcdef")
    frames = Preferences(pd.DataFrame(data.chosen, columns=names), pd.DataFrame(data.rejected, columns=names))
    model = RankSVM().fit(frames)
    assert model.feature_names_in_.tolist() == names
    assert isinstance(model.coef_table(), pd.DataFrame)
    with pytest.raises(DataError, match="where chosen has 'a', rejected has 'z'"):
        Preferences(frames.chosen, frames.rejected.rename(columns={"a": "z"}))
    with pytest.raises(DataError, match="where chosen has 'b', rejected has 'c'"):
        Preferences(frames.chosen, frames.rejected[list("acbdef")])
    numbered = Preferences(pd.DataFrame(data.chosen), pd.DataFrame(data.rejected, columns=range(6, 12)))
    np.testing.assert_array_equal(RankSVM().fit(numbered).coef_, model.coef_)


def test_the_hinge_with_few_pairs_takes_the_dual(monkeypatch):
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 500, 300)).astype(np.float32) / 17.0
    first += 0.05
    data = Preferences(first, second)
    fit, tron = (RankSVM(loss="hinge", solver=solver).fit(data) for solver in ("auto", "tron"))
    assert (fit.solver_, fit.converged_) == ("dual", True)
    assert abs(fit.objective_ - tron.objective_) <= fit.duality_gap_ + tron.duality_gap_
    assert RankSVM(loss="squared_hinge").fit(data).solver_ != "dual"
    warm = RankSVM(loss="hinge", solver="tron", warm_start=True).fit(data)
    assert warm.set_params(solver="auto").fit(data).solver_ == "adaptive"  # the dual cannot start from weights
    assert warm.n_iter_ < tron.n_iter_
    monkeypatch.setattr("ranksvm.fits.linear.DUAL_EPOCHS", (2, 2))
    slow = RankSVM(loss="hinge").fit(data)
    assert (slow.solver_, slow.converged_) == ("adaptive", True)
    # more than two pairs for each feature
    assert RankSVM(loss="hinge").fit(Preferences(first[:, :240], second[:, :240])).solver_ != "dual"


def test_far_more_features_than_pairs():
    data = made(20, 300)
    assert RankSVM().fit(data).solver_ == "dual"


@pytest.mark.parametrize("model", [RankSVM(C=0.1), KernelRankSVM(C=0.1)], ids=["linear", "kernel"])
def test_score_is_the_pairwise_accuracy(model):
    data, test = made(), made(seed=1, weight=np.random.default_rng(2).random(120))
    model.fit(data)
    assert model.score(test) == pytest.approx(accuracy(model, test))
    arguments = {"pairs": test.pairs, "pair_weight": test.weight}
    assert model.score(test.X, **arguments) == pytest.approx(accuracy(model, test))
    assert model.score(test.X, **arguments, qid=test.qid) == pytest.approx(accuracy(model, test))
    assert model.score(test.taken(np.arange(30))) == pytest.approx(accuracy(model, test.taken(np.arange(30))))


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sp.csr_array])
def test_rows_in_pairs_are_scored_a_few_at_a_time(form, monkeypatch):
    monkeypatch.setattr("ranksvm.data.scores.CHUNK_ROWS", 7)
    data = made()
    part = Preferences(form(data.chosen), form(data.rejected), prompt=data.prompt).taken([5, 90, 3, 3, *range(20, 60)])
    model = RankSVM(C=0.1).fit(part, eval_set=part)
    scores = np.concatenate([model.predict(part.chosen), model.predict(part.rejected)])[part.pairs]
    expected = pytest.approx((scores[:, 0] > scores[:, 1]).mean())
    assert model.score(part) == model.score(part.X, pairs=part.pairs) == expected
    assert model.evals_result_ == {"valid_0": {PAIRWISE: [expected]}}


@pytest.mark.parametrize("estimator", [RankSVM, KernelRankSVM])
def test_sets_of_pairs_are_evaluated(estimator):
    data, test = made(), made(seed=1)
    model = estimator(C=0.1).fit(data, eval_set=[test, (test.X, test.pairs)])
    expected = [pytest.approx(accuracy(model, test))]
    assert model.evals_result_ == {"valid_0": {PAIRWISE: expected}, "valid_1": {PAIRWISE: expected}}
    assert estimator(C=0.1).fit(data, eval_set=test).evals_result_ == {"valid_0": {PAIRWISE: expected}}


def test_sets_of_labels_beside_sets_of_pairs():
    data, random = made(), np.random.default_rng(3)
    X, y = random.normal(size=(30, 6)), random.integers(0, 3, 30)
    found = RankSVM().fit(data, eval_set=[(X, y), data], eval_qid=[np.arange(30) // 10, None]).evals_result_
    assert [list(each) for each in found.values()] == [["ndcg@10"], [PAIRWISE]]


@pytest.mark.parametrize("rule", ["best", "one_standard_error"])
def test_folds_of_prompts(rule):
    data = made(weight=np.random.default_rng(1).random(120))
    cv = QueryKFold(4, shuffle=True, random_state=0)
    model = RankSVMCV(Cs=[1e-3, 1e-1], cv=cv, rule=rule, tol=1e-8).fit(data)
    scores = np.empty((2, 4))
    for place, (train, test) in enumerate(cv.split(data.pairs, groups=data.prompt)):
        for row, C in enumerate([1e-3, 1e-1]):
            fold = RankSVM(C=C, tol=1e-8).fit(data.taken(train))
            scores[row, place] = accuracy(fold, data.taken(test))
        assert not set(data.prompt[train]) & set(data.prompt[test])
    np.testing.assert_allclose(model.scores_, scores)
    np.testing.assert_allclose(model.coef_, RankSVM(C=model.C_, tol=1e-8).fit(data).coef_, atol=1e-5)
    assert model.fitted_params_["metric"] == PAIRWISE
    pairs = RankSVMCV(Cs=[1e-3, 1e-1], cv=cv, rule=rule, tol=1e-8)
    pairs.fit(data.X, pairs=data.pairs, pair_weight=data.weight, qid=data.qid)
    np.testing.assert_array_equal(pairs.scores_, model.scores_)


def test_folds_without_queries_divide_what_no_pair_connects():
    data = made()
    X, pairs = data.X, np.vstack([data.pairs, data.pairs[:-1] + np.array([0, 1])])  # chains of pairs: one component
    with pytest.raises(DataError, match="only 1 query"):
        RankSVMCV(Cs=[0.1]).fit(X, pairs=pairs)
    assert RankSVMCV(Cs=[0.1]).fit(X, pairs=data.pairs).scores_.shape == (1, 5)


def test_kernels_choose_by_pairs():
    data, test = made(), made(seed=1)
    options = {"Cs": [1e-2, 1.0], "gammas": [0.01, 0.1], "tol": 1e-8}
    model = KernelRankSVMCV(cv=3, **options).fit(data)
    for place, (train, held) in enumerate(QueryKFold(3).split(data.pairs, groups=data.prompt)):
        fold = KernelRankSVM(C=1.0, gamma=0.1, tol=1e-8).fit(data.taken(train))
        assert model.scores_[1, 1, place] == pytest.approx(accuracy(fold, data.taken(held)))
    gram = data.X @ data.X.T
    own = KernelRankSVMCV(Cs=[1e-2, 1.0], cv=3, kernel="precomputed").fit(gram, pairs=data.pairs, qid=data.qid)
    linear = RankSVMCV(Cs=[1e-2, 1.0], cv=3).fit(data)
    np.testing.assert_allclose(own.scores_[0], linear.scores_, atol=0.03)
    chosen = KernelRankSVMCV(**options).fit(data, eval_set=test)
    assert chosen.best_score_ == pytest.approx(accuracy(chosen, test))


def test_the_path():
    data = made()
    two = regularization_path(data, Cs=[1e-3, 1e-1])
    one = regularization_path(data.X, pairs=data.pairs, qid=data.qid, Cs=[1e-3, 1e-1])
    np.testing.assert_allclose(two.coefs, one.coefs, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.ones(240)}, "y is given in addition to Preferences"),
        ({"qid": np.ones(240)}, r"qid is given in addition to Preferences: say Preferences\(..., prompt"),
        ({"pairs": [[0, 1]]}, "pairs is given in addition to Preferences"),
        (
            {"pair_weight": np.ones(120)},
            r"pair_weight is given in addition to Preferences: say Preferences\(..., weight",
        ),
        ({"event": np.ones(240)}, "event says which times in y"),
    ],
)
def test_what_preferences_bring_is_not_given_twice(arguments, message):
    with pytest.raises(DataError, match=message):
        RankSVM().fit(made(), **arguments)


def test_values_that_are_not_finite_are_named():
    data = made()
    data.rejected[7, 2] = np.nan
    with pytest.raises(DataError, match=r"rejected: Input X contains NaN at X\[7, 2\]"):
        RankSVM().fit(data)


@pytest.mark.parametrize("ranker", [RankSVM(), AdditiveRankSVM(), AdditiveRankSVMCV(Cs=[0.1])])
def test_infinite_values_are_named(ranker):
    data, valid = made(), made(seed=1)
    valid.rejected[7, 2] = np.inf
    # listed with fewer pairs than it has rows: the row is that of the whole set
    listed = (valid.rejected, [[0, 1], [7, 8]])
    with pytest.raises(DataError, match=r"^rejected: Input X contains infinity at X\[7, 2\]"):
        ranker.fit(valid)
    for held_out in (valid, listed):
        with pytest.raises(DataError, match=r"^eval_set, valid_0: Input X contains infinity at X\[7, 2\]"):
            ranker.fit(data, eval_set=[held_out])


@pytest.mark.parametrize(
    "ranker",
    [RankSVM(0.1, tol=1e-10), AdditiveRankSVM(0.1), KernelRankSVM(0.1), RankSVMCV(Cs=[0.1])],
)
def test_dual_variables_of_preferences(ranker):
    data = made(weight=np.random.default_rng(1).random(120)).taken(np.arange(20, 110))
    ranker.fit(data)
    given = {"pairs": data.pairs, "pair_weight": data.weight, "qid": data.qid}
    expected = ranker.dual_coef(data.X, **given).per_document()
    found = ranker.dual_coef(data).per_document().reshape(2, 120)  # also of the pairs that are left out
    np.testing.assert_allclose(found[:, 20:110].ravel(), expected, atol=1e-12)
    assert not found[:, :20].any()
    assert not found[:, 110:].any()
    with pytest.raises(DataError, match="pairs is given in addition to Preferences"):
        ranker.dual_coef(data, pairs=data.pairs)


@pytest.mark.parametrize("method", ["predict", "rank", "explain"])
def test_what_takes_one_array(method):
    data = made()
    with pytest.raises(DataError, match=r"not Preferences: give data\.chosen"):
        getattr(RankSVM().fit(data), method)(data)


def test_other_rankers_take_their_arrays():
    with pytest.raises(DataError, match=r"X=data\.X, pairs=data\.pairs"):
        SOLARRanker().fit(made(), np.ones(240))


@pytest.mark.parametrize("ranker", [SOLARRanker(), FactorizedRankSVM(), RegularizedRankSVM()])
def test_rankers_that_learn_from_labels_say_who_learns_from_preferences(ranker):
    with pytest.raises(
        DataError, match=r"requires y to be passed.* RankSVM, AdditiveRankSVM, KernelRankSVM .* learn from Preferences"
    ):
        ranker.fit(made())


def test_options_that_need_labels():
    data = made()
    with pytest.raises(OptionError, match="metric='map' needs labels: pairs are evaluated by 'pairwise_accuracy'"):
        RankSVMCV(metric="map").fit(data)
    with pytest.raises(OptionError, match="metric='map' needs labels"):
        RankSVMCV(metric="map").fit(data, eval_set=data)
    with pytest.raises(OptionError, match="metric='map' needs labels"):
        RankSVMCV(Cs=[1.0]).fit(data, eval_set=data, eval_metric="map")
    with pytest.raises(OptionError, match="metric='map' needs labels"):
        RankSVM().fit(data, eval_set=data, eval_metric=[PAIRWISE, "map"])
    with pytest.raises(DataError, match="takes the kernel matrix of all rows"):
        KernelRankSVM(kernel="precomputed").fit(data)
    model = RankSVM().fit(data)
    with pytest.raises(DataError, match="with pairs, give pair_weight"):
        model.score(data, np.ones(120))
    with pytest.raises(DataError, match="without pairs"):
        model.score(data.chosen, np.ones(120), pair_weight=np.ones(120))
    with pytest.raises(DataError, match="needs labels y, or pairs"):
        model.score(data.chosen)


def test_a_metric_of_labels_is_that_of_the_sets_with_labels():
    data, labeled = made(), make_ranking(n_queries=10, n_docs=8, n_features=6, random_state=0)
    sets = {"eval_set": [data, (labeled.X, labeled.y)], "eval_qid": [None, labeled.qid]}
    found = RankSVM().fit(data, **sets, eval_metric=[PAIRWISE, "map"]).evals_result_
    assert {name: set(values) for name, values in found.items()} == {
        "valid_0": {PAIRWISE},
        "valid_1": {PAIRWISE, "map"},
    }


def test_two_arrays_without_preferences_are_refused_with_advice():
    data = made()
    for model in (RankSVM(), RankSVMCV(), KernelRankSVM(), FactorizedRankSVM()):
        with pytest.raises(DataError, match=r"got shape \(120, 6\).*fit\(Preferences\(chosen, rejected\)\)"):
            model.fit(data.chosen, data.rejected)


def test_pairs_as_two_arrays_are_refused_with_advice():
    data = made()
    with pytest.raises(DataError, match=r"shape \(2, 10\).*np.column_stack\(pairs\)"):
        RankSVM().fit(data.chosen, pairs=(np.arange(10), np.arange(10, 20)))
