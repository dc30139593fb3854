"""RankSVM with every loss, choice of pairs and weight, against every pair written out."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from oracle import ExplicitPairs, pairs_of
from ranksvm import RankSVM, RankSVMCV, make_ranking, regularization_path
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError

LOSSES = ("squared_hinge", "hinge", "huber")
WEIGHTINGS = ("uniform", "per_query", "label_gap", "gain_gap")
SELECTIONS = ("all", "adjacent")


def make_data(seed=0, n=80, n_features=6, n_levels=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    qid = rng.integers(0, 5, n)
    y = np.clip(np.round(X[:, 0] + rng.normal(size=n) + 2), 0, n_levels - 1)
    return X, y, qid, rng


def check_certificate(model, oracle):
    """Primal less dual over explicit pairs is the gap, and small."""
    C, hinge = model.C, model.loss == "hinge"
    value = oracle.hinge_value(model.coef_, C) if hinge else oracle.value(model.coef_, C)
    assert model.converged_
    assert model.objective_ == pytest.approx(value, rel=1e-10)
    assert model.duality_gap_ == pytest.approx(value - oracle.dual_value(model.coef_, C, hinge=hinge), abs=1e-9 * value)


@pytest.mark.parametrize(("loss", "selection", "weighting"), list(itertools.product(LOSSES, SELECTIONS, WEIGHTINGS)))
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_every_combination_is_certified_over_explicit_pairs(loss, selection, weighting, storage):
    X, y, qid, rng = make_data()
    weights = {
        "sample_weight": rng.choice([0.0, 0.5, 2.0], len(y)),
        "query_weight": np.array([1.0, 3.0, 0.5, 2.0, 1.0])[qid],
        "propensity": rng.choice([0.1, 0.7, 1.0], len(y)),
    }
    stored = X if storage == "dense" else scipy.sparse.csr_array(X)
    for given in ({}, *({name: values} for name, values in weights.items()), weights):
        model = RankSVM(0.1, loss=loss, huber_width=0.3, pair_selection=selection, pair_weighting=weighting, tol=1e-7)
        model.fit(stored, y, qid=qid, **given)
        oracle = ExplicitPairs(y, qid, X, width=model.width_, selection=selection, weighting=weighting, **given)
        assert model.n_pairs_ == oracle.n_pairs
        check_certificate(model, oracle)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_row_of_weight_two_is_the_row_twice(loss, weighting, selection):
    X, y, qid, rng = make_data(1)
    times = rng.integers(0, 4, len(y))
    options = {"loss": loss, "pair_weighting": weighting, "pair_selection": selection, "tol": 1e-9}
    weighted = RankSVM(0.05, **options).fit(X, y, qid=qid, sample_weight=times)
    repeated = RankSVM(0.05, **options).fit(*(np.repeat(a, times, axis=0) for a in (X, y)), qid=np.repeat(qid, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-4)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)


def test_the_hinge_is_what_the_narrowest_huber_loss_tends_to():
    X, y, qid, _ = make_data(2)
    hinge = RankSVM(0.1, loss="hinge", tol=1e-9).fit(X, y, qid=qid)
    huber = RankSVM(0.1, loss="huber", huber_width=1e-5, tol=1e-9).fit(X, y, qid=qid)
    np.testing.assert_allclose(huber.coef_, hinge.coef_, atol=1e-3)
    assert hinge.width_ < 1e-3
    assert huber.width_ == 1e-5
    assert RankSVM(0.1).fit(X, y, qid=qid).width_ is None


@pytest.mark.parametrize("weighting", ["label_gap", "gain_gap"])
def test_gaps_do_not_depend_on_the_origin_of_the_labels(weighting):
    X, y, qid, _ = make_data(3)
    fits = [RankSVM(0.1, pair_weighting=weighting, tol=1e-9).fit(X, y + c, qid=qid).coef_ for c in (0.0, -7.0, 1024.0)]
    np.testing.assert_allclose(fits[1], fits[0], atol=1e-6)
    np.testing.assert_allclose(fits[2], fits[0], atol=1e-6)


def test_gains_of_thousands_of_levels_do_not_overflow():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 4))
    y = np.argsort(np.argsort(X[:, 0] + 0.1 * rng.normal(size=3000)))
    model = RankSVM(1e-3, pair_weighting="gain_gap").fit(X, y, group=[3000])
    assert model.converged_
    assert np.isfinite(model.coef_).all()
    assert model.coef_[0] > 0.0


def test_adjacent_pairs_are_those_of_neighboring_labels():
    data = make_ranking(6, 50, 5, n_levels=None, random_state=0)
    model = RankSVM(pair_selection="adjacent").fit(data.X, data.y, qid=data.qid)
    assert model.n_pairs_ == 6 * 49
    assert model.n_pairs_ == len(pairs_of(data.y, data.qid, "adjacent")[0])


@pytest.mark.parametrize("n_rows", [2000, 60_000])
def test_a_sample_of_adjacent_pairs_is_good_enough_for_a_start(n_rows):
    """Drawn row by row, hardly any two of a list of distinct labels would be neighbors."""
    data = make_ranking(2, n_rows // 2, 40, n_levels=None, random_state=0)
    model = RankSVM(1e-3, pair_selection="adjacent").fit(data.X, data.y, qid=data.qid)
    assert model.converged_
    assert model.n_iter_ <= 10


# -- explicit pairs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["newton", "tron"])
def test_the_pairs_that_labels_imply_give_the_same_model(loss, solver):
    X, y, qid, rng = make_data(5)
    options = {"C": 0.1, "loss": loss, "solver": solver, "tol": 1e-9}
    pairs = np.column_stack(pairs_of(y, qid))
    by_labels = RankSVM(**options).fit(X, y, qid=qid)
    by_pairs = RankSVM(**options).fit(X, pairs=rng.permutation(pairs), qid=qid)
    np.testing.assert_allclose(by_pairs.coef_, by_labels.coef_, atol=2e-4)
    assert by_pairs.objective_ == pytest.approx(by_labels.objective_, rel=1e-8)
    assert by_pairs.n_pairs_ == by_labels.n_pairs_
    assert by_pairs.n_queries_ == by_labels.n_queries_
    without_qid = RankSVM(**options).fit(X, pairs=pairs)
    np.testing.assert_allclose(without_qid.coef_, by_labels.coef_, atol=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighting", ["uniform", "per_query"])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_weighted_contradicting_and_repeated_pairs(loss, weighting, storage):
    X, y, qid, rng = make_data(6)
    candidates = np.argwhere((qid[:, None] == qid) & ~np.eye(len(y), dtype=bool))
    pairs = candidates[rng.integers(0, len(candidates), 300)]
    weights = {
        "pair_weight": rng.choice([0.0, 1.0, 5.0], 300),
        "sample_weight": rng.choice([0.5, 1.0], len(y)),
        "query_weight": 1.0 + qid,
        "propensity": rng.choice([0.2, 1.0], len(y)),
    }
    model = RankSVM(0.1, loss=loss, pair_weighting=weighting, tol=1e-7)
    model.fit(X if storage == "dense" else scipy.sparse.csr_array(X), pairs=pairs, qid=qid, **weights)
    oracle = ExplicitPairs(y, qid, X, width=model.width_, weighting=weighting, pairs=pairs, **weights)
    check_certificate(model, oracle)


def test_many_small_preferences_on_several_threads():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60_000, 20)).astype(np.float32)
    pairs = rng.permutation(60_000).reshape(-1, 2)
    w = rng.normal(size=20)
    swap = X[pairs[:, 0]] @ w < X[pairs[:, 1]] @ w
    pairs[swap] = pairs[swap][:, ::-1]
    fits = [RankSVM(0.01, n_jobs=n).fit(X, pairs=pairs) for n in (1, 2)]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-6)
    assert np.corrcoef(fits[0].coef_, w)[0, 1] > 0.99
    assert fits[0].n_pairs_ == 30_000


def test_the_model_ranks_and_scores_as_one_from_labels_does():
    X, y, qid, _ = make_data(8)
    model = RankSVM(0.1).fit(X, pairs=np.column_stack(pairs_of(y, qid)), qid=qid)
    assert set(model.rank(X, qid=qid)) == set(qid.tolist())
    assert 0.0 < model.score(X, y, qid=qid) <= 1.0
    path = regularization_path(X, pairs=np.column_stack(pairs_of(y, qid)), qid=qid, Cs=[0.01, 0.1])
    np.testing.assert_allclose(path.coefs[1], model.coef_, atol=1e-2)
    chosen = RankSVMCV([0.01, 0.1]).fit(
        X, pairs=np.column_stack(pairs_of(y, qid)), qid=qid, eval_set=[(X, y)], eval_qid=[qid]
    )
    assert chosen.C_ in (0.01, 0.1)


@pytest.mark.parametrize("dtype", ["int32", "Int64", "UInt8"])
def test_pairs_in_columns_of_pandas(dtype):
    pandas = pytest.importorskip("pandas")
    X, pairs = np.arange(8.0).reshape(4, 2) ** 2, np.array([[3, 0], [1, 2]])
    frame = pandas.DataFrame(pairs, columns=["preferred", "other"]).astype(dtype)
    found = RankSVM().fit(X, pairs=frame)
    np.testing.assert_array_equal(found.coef_, RankSVM().fit(X, pairs=pairs).coef_)
    frame.iloc[1, 0] = None
    with pytest.raises(DataError, match="row numbers must be whole numbers"):
        RankSVM().fit(X, pairs=frame)


PAIRS = np.array([[0, 1]])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"pairs": PAIRS, "y": [1, 0, 0, 1]}, DataError, "Give y .labels, which imply the pairs. or pairs, not both"),
        ({"pairs": [[0, 1, 2]]}, DataError, r"pairs has shape \(1, 3\): it must have one row \(preferred, other\)"),
        ({"pairs": np.empty((0, 2), dtype=int)}, NoComparablePairsError, "pairs is empty"),
        ({"pairs": [[0.0, 1.0]]}, DataError, "pairs holds float64 values: row numbers must be whole"),
        ({"pairs": [[0, 1], [2, 4]]}, DataError, r"pairs\[1\] is \(2, 4\), but X has rows 0 to 3"),
        ({"pairs": [[0, -1]]}, DataError, r"pairs\[0\] is \(0, -1\)"),
        ({"pairs": [[0, 1], [2, 2]]}, DataError, r"pairs\[1\] compares row 2 with itself"),
        ({"pairs": [[1, 2]]}, DataError, r"pairs\[0\] joins row 1 of query 'a' with row 2 of query 'b'"),
        ({"pairs": PAIRS, "pair_weight": [1.0, 2.0]}, DataError, "pair_weight has 2 entries but pairs has 1 rows"),
        ({"pairs": PAIRS, "pair_weight": [-1.0]}, DataError, "pair_weight is -1.0 in row 0"),
        ({"pairs": PAIRS, "pair_weight": [0.0]}, NoComparablePairsError, "All 1 pairs have zero weight"),
        ({"y": [1, 0, 0, 1], "pair_weight": [1.0]}, DataError, "pair_weight is given without pairs"),
        ({"y": [1, 0, 0, 1], "propensity": [0.5, 0.5, 0.0, 1.0]}, DataError, "propensity is 0.0 in row 2"),
        ({"y": [1, 0, 0, 1], "propensity": [0.5, 0.5, 1.5, 1.0]}, DataError, r"propensity is 1.5 in row 2.*\(0, 1\]"),
        ({"y": [1, 0, 0, 1], "propensity": [0.5]}, DataError, "propensity has 1 entries but X has 4 rows"),
    ],
)
def test_what_fit_refuses(arguments, error, message):
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(error, match=message):
        RankSVM().fit(X, qid=["a", "a", "b", "b"], **arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"huber_width": 0.0}, "huber_width must be a positive"),
        ({"pair_selection": "some"}, "pair_selection must be one of 'all', 'adjacent', got 'some'"),
        ({"pair_weighting": "none"}, "pair_weighting must be one of 'uniform', 'per_query', 'label_gap', 'gain_gap'"),
        ({"pair_selection": "adjacent"}, "pair_selection='adjacent' chooses among the pairs that labels imply"),
        ({"pair_weighting": "label_gap"}, "pair_weighting='label_gap' is computed from labels"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(OptionError, match=message):
        RankSVM(**options).fit(np.eye(3), pairs=PAIRS)


def test_folds_need_several_groups_of_pairs():
    with pytest.raises(DataError, match="n_splits is 5 but there is only 1 query"):
        RankSVMCV().fit(np.eye(4), pairs=PAIRS)


# -- along C, on and on ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "huber"])
@pytest.mark.parametrize("solver", ["newton", "tron"])
def test_every_solution_of_a_path_is_certified(loss, solver):
    X, y, qid, _ = make_data(9)
    path = regularization_path(X, y, qid=qid, loss=loss, solver=solver, Cs=2.0 ** np.arange(-8, 3), tol=1e-6)
    assert path.converged.all()
    for C, w, value in zip(path.Cs, path.coefs, path.objectives, strict=True):
        single = RankSVM(C, loss=loss, tol=1e-9).fit(X, y, qid=qid)
        assert value == pytest.approx(single.objective_, rel=2e-6)
        np.testing.assert_allclose(w, single.coef_, atol=0.05 * np.abs(single.coef_).max())


def test_a_warm_start_goes_on_from_a_hinge_model():
    X, y, qid, _ = make_data(10)
    model = RankSVM(0.1, loss="hinge", warm_start=True, tol=1e-3).fit(X, y, qid=qid)
    model.set_params(tol=1e-8).fit(X, y, qid=qid)
    assert model.converged_
    assert model.objective_ == pytest.approx(
        RankSVM(0.1, loss="hinge", tol=1e-9).fit(X, y, qid=qid).objective_, rel=1e-7
    )


@pytest.mark.parametrize("loss", ["hinge", "huber"])
@pytest.mark.parametrize("weighting", ["uniform", "gain_gap"])
def test_threads_and_storage_change_round_off_only(loss, weighting):
    data = make_ranking(300, 40, 30, random_state=1)
    options = {"C": 1e-3, "loss": loss, "pair_weighting": weighting, "tol": 1e-8}
    fits = [RankSVM(**options, n_jobs=n).fit(data.X, data.y, qid=data.qid) for n in (1, 2, 3)]
    fits.append(RankSVM(**options).fit(np.asfortranarray(data.X), data.y, qid=data.qid))
    fits.append(RankSVM(**options).fit(scipy.sparse.csr_array(data.X), data.y, qid=data.qid))
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.coef_, fits[0].coef_, atol=1e-4 * np.abs(fits[0].coef_).max())
        assert fit.objective_ == pytest.approx(fits[0].objective_, rel=1e-8)


def test_queries_without_pairs_and_single_documents_count_for_nothing():
    X, y, qid, rng = make_data(11)
    plain = RankSVM(0.1, loss="hinge", pair_weighting="per_query", tol=1e-9).fit(X, y, qid=qid)
    X2 = np.vstack([X, rng.normal(size=(4, X.shape[1]))])
    y2, qid2 = np.append(y, [1.0, 1.0, 3.0, 0.0]), np.append(qid, [90, 90, 91, 92])
    more = RankSVM(0.1, loss="hinge", pair_weighting="per_query", tol=1e-9).fit(X2, y2, qid=qid2)
    np.testing.assert_allclose(more.coef_, plain.coef_, atol=1e-6)
