"""RankSVM: invariances, weights, warm starts, options, errors, persistence."""

import logging
import pickle
import warnings
from fractions import Fraction
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import ranksvm
from oracle import ExplicitPairs
from ranksvm import RankSVM, RankSVMCV, make_ranking, regularization_path
from ranksvm.estimators.base import inputs
from ranksvm.exceptions import DataError, LikelyMistakeWarning, NoComparablePairsError, OptionError
from ranksvm.metrics import evaluate
from ranksvm.solvers import newton_cg

SOLVERS = pytest.mark.parametrize("solver", ["newton", "tron"])


def make_data(seed=0, n=80, n_features=4, n_queries=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    y = np.digitize(X @ rng.normal(size=n_features) + rng.normal(size=n), [-1, 0, 2])
    qid = rng.integers(0, n_queries, n)
    y[:2], qid[:2] = (0, 1), 0
    return X, y, qid, rng


def fit(X, y, qid=None, **options):
    weights = {name: options.pop(name) for name in ("sample_weight", "query_weight", "group") if name in options}
    return RankSVM(**{"C": 0.1, "tol": 1e-12, "n_jobs": 1, **options}).fit(X, y, qid=qid, **weights)


def assert_same(a, b, rtol=1e-5):
    """Equal up to the certificates: |w - w'| <= sqrt(2 gap) + sqrt(2 gap')."""
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)
    bound = np.sqrt(2 * a.duality_gap_) + np.sqrt(2 * b.duality_gap_) + 1e-9 * np.linalg.norm(b.coef_)
    assert np.linalg.norm(a.coef_ - b.coef_) <= bound
    assert a.n_pairs_ == b.n_pairs_


# -- invariances ------------------------------------------------------------------------------------------------------

seeds = st.integers(0, 2**32)
quickly = settings(max_examples=30, deadline=None)


@SOLVERS
@quickly
@given(seeds)
def test_the_order_of_rows_does_not_matter(solver, seed):
    X, y, qid, rng = make_data(seed)
    order = rng.permutation(len(y))
    assert_same(fit(X[order], y[order], qid[order], solver=solver), fit(X, y, qid, solver=solver))


@SOLVERS
@quickly
@given(seeds)
def test_names_of_queries_do_not_matter(solver, seed):
    X, y, qid, rng = make_data(seed)
    plain = fit(X, y, qid, solver=solver)
    names = rng.permutation([f"query {n}" for n in range(8)])
    for renamed in (names[qid], -1000 * qid - 7, qid + 0.5, names[qid].astype(object), (qid + 2**40).astype(np.uint64)):
        assert_same(fit(X, y, renamed, solver=solver), plain)


@SOLVERS
@quickly
@given(seeds, st.floats(-1e3, 1e3))
def test_a_constant_feature_does_not_matter(solver, seed, constant):
    X, y, qid, _ = make_data(seed)
    plain = fit(X, y, qid, solver=solver)
    wide = fit(np.hstack([X, np.full((len(y), 1), constant)]), y, qid, solver=solver)
    assert abs(wide.coef_[4]) <= np.sqrt(2 * wide.duality_gap_) + 1e-9
    wide.coef_ = wide.coef_[:4]
    assert_same(wide, plain)


@SOLVERS
@quickly
@given(seeds)
def test_only_the_order_of_labels_matters(solver, seed):
    X, y, qid, _ = make_data(seed)
    plain = fit(X, y, qid, solver=solver)
    for labels in (np.exp(y), -5.0 + y / 7, 2**40 * y, y + 100.0 * qid):  # the last one differs by query
        assert_same(fit(X, labels, qid, solver=solver), plain)


@SOLVERS
@quickly
@given(seeds)
def test_weight_two_is_the_row_twice(solver, seed):
    X, y, qid, rng = make_data(seed)
    v = rng.integers(0, 4, len(y))
    v[:2] = 1
    weighted, repeated = (
        fit(X, y, qid, sample_weight=v, solver=solver),
        fit(np.repeat(X, v, axis=0), np.repeat(y, v), np.repeat(qid, v), solver=solver),
    )
    weighted.n_pairs_ = repeated.n_pairs_  # pairs are counted without their weights
    assert_same(weighted, repeated)


@SOLVERS
@quickly
@given(seeds)
def test_weight_two_of_a_query_is_the_query_twice(solver, seed):
    X, y, qid, rng = make_data(seed)
    v = np.array([1, *rng.integers(0, 3, 7)])[qid]
    copies = [np.flatnonzero(v >= copy) for copy in (1, 2)]
    rows = np.concatenate(copies)
    names = np.concatenate([qid[copies[0]], 100 + qid[copies[1]]])
    weighted, repeated = fit(X, y, qid, query_weight=v, solver=solver), fit(X[rows], y[rows], names, solver=solver)
    weighted.n_pairs_ = repeated.n_pairs_
    assert_same(weighted, repeated)


# -- what X, qid and group may be -------------------------------------------------------------------------------------


@SOLVERS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_storage_does_not_matter(solver, dtype):
    X, y, qid, _ = make_data()
    X = np.round(X * 64).astype(dtype) / 64
    plain = fit(X.astype(float), y, qid, solver=solver)
    assert_same(fit(X, y, qid, solver=solver), plain)
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist(), pd.DataFrame(X), sp.csr_array(X)):
        assert_same(fit(other, y, qid, solver=solver), plain)
    for other in (sp.csc_matrix(X), sp.coo_array(X), sp.csr_matrix(X)):
        assert_same(fit(other, y, qid, solver=solver), plain)
    whole = (X * 64).astype(np.int32)
    assert_same(fit(whole, y, qid, solver=solver), fit(whole.astype(float), y, qid, solver=solver))


def test_floats_in_C_order_and_CSR_are_used_where_they_lie(monkeypatch):
    X, y, qid, _ = make_data()
    seen = []
    original = inputs.features_and_labels
    monkeypatch.setattr(inputs, "features_and_labels", lambda *a, **k: seen.append(original(*a, **k)) or seen[-1])
    for dtype in (np.float32, np.float64):
        dense = X.astype(dtype)
        dense.setflags(write=False)
        fit(dense, y, qid)
        assert np.shares_memory(seen[-1][0], dense)
        sparse = sp.csr_array(dense)
        fit(sparse, y, qid)
        assert np.shares_memory(seen[-1][0].data, sparse.data)


def test_labels_of_any_kind():
    X, y, qid, _ = make_data()
    plain = fit(X, y, qid)
    for labels in (y.astype(np.int8), y.tolist(), pd.Series(y, index=range(900, 980)), y.astype(float) - 1.5):
        assert_same(fit(X, labels, qid), plain)
    assert_same(fit(X, y > 1, qid), fit(X, np.where(y > 1, 1.0, -1.0), qid))


def test_group_is_qid_of_consecutive_rows():
    X, y, qid, _ = make_data()
    order = np.argsort(qid, kind="stable")
    X, y, qid = X[order], y[order], qid[order]
    group = np.bincount(qid)
    plain = fit(X, y, qid)
    assert_same(fit(X, y, group=group), plain)
    assert_same(fit(X, y, group=np.insert(group, 2, 0).tolist()), plain)


def test_no_qid_is_one_query():
    X, y, _, _ = make_data()
    model = fit(X, y)
    assert_same(model, fit(X, y, np.full(len(y), 3)))
    assert model.n_queries_ == 1
    assert model.score(X, y) == model.score(X, y, qid=np.zeros(len(y)))


@SOLVERS
def test_the_number_of_threads_does_not_matter(solver):
    data = make_ranking(n_queries=300, n_docs=(1, 80), n_features=20, random_state=0)
    one, two = (fit(data.X, data.y, data.qid, n_jobs=n, solver=solver, C=1e-3, tol=1e-10) for n in (1, 2))
    assert_same(one, two)
    np.testing.assert_allclose(one.predict(data.X), two.predict(data.X), rtol=1e-3, atol=1e-5)


def test_one_long_query_on_two_threads():
    data = make_ranking(n_queries=1, n_docs=40_000, n_features=20, n_levels=None, random_state=0)
    one, two = (fit(data.X, data.y, qid=data.qid, n_jobs=n, C=1e-8, tol=1e-10) for n in (1, 2))
    assert_same(one, two)
    assert one.n_pairs_ == 40_000 * 39_999 // 2


# -- the fitted model -------------------------------------------------------------------------------------------------


@SOLVERS
def test_fitted_attributes(solver):
    X, y, qid, _ = make_data()
    model = RankSVM(C=0.5, solver=solver, tol=1e-8).fit(X, y, qid=qid)
    oracle = ExplicitPairs(y, qid, X)
    assert model.objective_ == pytest.approx(oracle.value(model.coef_, 0.5))
    assert isinstance(model.objective_, float)
    assert isinstance(model.duality_gap_, float)
    assert model.converged_ is True
    assert model.status_.startswith("Converged")
    assert model.solver_ == solver
    assert model.n_iter_ == len(model.history_["objective"]) - 1
    assert model.history_["duality_gap"][-1] == model.duality_gap_
    assert (model.n_pairs_, model.n_queries_, model.n_features_in_) == (oracle.n_pairs, 8, 4)
    assert model.get_params() == RankSVM(C=0.5, solver=solver, tol=1e-8).get_params()
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert RankSVM().fit(frame, y, qid=qid).feature_names_in_.tolist() == list("abcd")


def test_auto_takes_tron_for_many_features():
    X = sp.random_array((3500, 3000), density=0.01, random_state=0, format="csr")
    y = np.arange(3500) % 3
    assert RankSVM().fit(X, y, qid=y // 3).solver_ == "tron"
    assert RankSVM().fit(*make_data()[:2]).solver_ == "newton"
    with pytest.raises(OptionError, match="too large for 3000 features"):
        RankSVM(solver="newton").fit(X, y, qid=y // 3)


def test_predict_rank_and_score():
    X, y, qid, _ = make_data()
    X[5] = X[4]  # a tie
    qid[5] = qid[4]
    model = fit(X, y, qid)
    scores = model.predict(X)
    np.testing.assert_allclose(scores, X @ model.coef_, rtol=1e-12)
    np.testing.assert_allclose(model.predict(sp.csr_array(X)), scores, rtol=1e-12)
    ranking = model.rank(X, qid)
    assert list(ranking) == list(dict.fromkeys(qid.tolist()))
    for query, rows in ranking.items():
        expected = sorted(np.flatnonzero(qid == query), key=lambda row: (-scores[row], row))
        assert rows.tolist() == expected
    assert list(model.rank(X)) == [0]
    assert model.score(X, y, qid=qid) == evaluate(y, scores, qid, ["ndcg@10"]).means["ndcg@10"]
    weight = 1.0 + qid
    expected = evaluate(y, scores, qid, ["ndcg@10"], sample_weight=weight).means["ndcg@10"]
    assert model.score(X, y, qid=qid, sample_weight=weight) == expected
    with pytest.raises(DataError, match="enable_metadata_routing"):
        model.score(X, y)


def test_sums_of_float32_predictions_are_in_float64():
    model = fit(*make_data()[:2])
    model.coef_ = np.array([1.0, 1.0, -1.0, 0.0])
    assert model.predict(np.array([[1e8, 1.0, 1e8, 0.0]], dtype=np.float32))[0] == 1.0


@SOLVERS
def test_warm_start_goes_on_from_the_last_fit(solver):
    data = make_ranking(n_queries=100, n_docs=20, n_features=30, random_state=0)
    model = RankSVM(C=0.01, solver=solver, warm_start=True, tol=1e-6).fit(data.X, data.y, qid=data.qid)
    cold = model.history_["evaluations"][-1]
    model.fit(data.X, data.y, qid=data.qid)
    assert model.n_iter_ == 0
    model.set_params(C=0.011).fit(data.X, data.y, qid=data.qid)
    assert model.converged_
    assert model.history_["evaluations"][-1] <= cold
    again = RankSVM(C=0.011, solver=solver, tol=1e-6).fit(data.X, data.y, qid=data.qid)
    assert model.objective_ == pytest.approx(again.objective_, rel=2e-6)
    assert model.history_["objective"][0] < again.history_["objective"][0]
    with pytest.raises(DataError, match="last fit had 30 features, X has 29"):
        model.fit(data.X[:, :29], data.y, qid=data.qid)


def test_fit_again_forgets_the_last_fit():
    X, y, qid, _ = make_data()
    model = fit(X[:, :2], -y, qid)
    model.fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.coef_, fit(X, y, qid).coef_)


@pytest.mark.parametrize("copy", [lambda m, _: pickle.loads(pickle.dumps(m)), "joblib", "save"])
def test_copies_predict_as_the_model(copy, tmp_path):
    X, y, qid, _ = make_data()
    model = fit(X, y, qid)
    if copy == "joblib":
        joblib.dump(model, tmp_path / "model.joblib")
        copied = joblib.load(tmp_path / "model.joblib")
    elif copy == "save":
        model.save(tmp_path / "model")
        copied = ranksvm.load(tmp_path / "model")
    else:
        copied = copy(model, tmp_path)
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))
    assert copied.get_params() == model.get_params()
    assert copied.objective_ == model.objective_
    assert copied.history_ == model.history_
    assert not hasattr(clone(model), "coef_")
    assert clone(model).get_params() == model.get_params()


# -- warnings, logs and errors ----------------------------------------------------------------------------------------


def test_stopping_early_warns_with_the_reason():
    X, y, qid, _ = make_data()
    with pytest.warns(ConvergenceWarning, match=r"Stopped at max_iter.*relative duality gap") as caught:
        model = fit(X * 10.0 ** np.array([-3, 4, 0, 2]), y, qid, solver="tron", C=100.0, max_iter=1)
    assert caught[0].filename == __file__  # where fit was called
    assert model.converged_ is False
    assert model.status_.startswith("Stopped at max_iter")
    with pytest.warns(ConvergenceWarning, match="round-off"):
        fit(X, y, qid, tol=1e-40)


def test_verbose_logs_the_iterations_and_leaves_the_logger_as_it_was(caplog):
    X, y, qid, _ = make_data()
    logger = logging.getLogger("ranksvm")
    level = logger.level
    fit(X, y, qid)
    assert not caplog.records
    fit(X, y, qid, verbose=1)
    assert any("relative gap" in record.message for record in caplog.records)
    assert logger.level == level


def test_nothing_is_printed(capsys):
    X, y, qid, _ = make_data()
    fit(X, y, qid).rank(X, qid)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0}, "C must be a positive, finite number, got 0"),
        ({"C": -1.0}, "C must be"),
        ({"C": np.inf}, "C must be"),
        ({"C": "1"}, "C must be"),
        ({"C": True}, "C must be"),
        ({"loss": "hinge2"}, "loss must be one of 'squared_hinge', 'hinge', 'huber', 'logistic', got 'hinge2'"),
        ({"solver": "sgd"}, "solver must be one of 'auto', 'newton', 'tron', 'dual', 'direct', got 'sgd'"),
        ({"tol": 0.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be a whole number from 1, got 0"),
        ({"max_iter": 1.5}, "max_iter must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"n_jobs": "all"}, "n_jobs must be"),
    ],
)
def test_options_that_cannot_be(options, message):
    X, y, qid, _ = make_data()
    with pytest.raises(OptionError, match=message):
        fit(X, y, qid, **options)


def test_whole_numbers_of_numpy_are_options_too():
    X, y, qid, _ = make_data()
    fit(X, y, qid, n_jobs=np.int64(1), max_iter=np.int32(50), C=np.float32(0.5))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("bad", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_value_that_is_not_finite_is_named_with_its_place(bad, name, storage, dtype):
    X, y, qid, _ = make_data()
    model = fit(X, y, qid)
    X = X.astype(dtype)
    X[17, 2] = bad
    with pytest.raises(DataError, match=rf"{name} at X\[17, 2\]"):
        fit(storage(X), y, qid)
    with pytest.raises(DataError, match=rf"{name} at X\[17, 2\]"):
        model.predict(storage(X))
    model.coef_ = np.zeros(4)  # inf * 0 is not finite either
    with pytest.raises(DataError, match=rf"{name} at X\[17, 2\]"):
        model.predict(storage(X))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_predict_reads_finite_features_once(storage, monkeypatch):
    X, y, qid, _ = make_data()
    model = fit(X, y, qid)
    with monkeypatch.context() as patched:
        patched.setattr(inputs.validation, "check_finite", None)  # not called
        np.testing.assert_allclose(model.predict(storage(X)), X @ model.coef_)
    model.coef_ = np.full(4, 1e300)
    X[0], X[1] = 1e300, 0.0
    with pytest.raises(DataError, match=r"score of row 0 .* is inf"):  # although no feature is
        model.predict(storage(X))


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda d: {**d, "y": np.zeros(80)}, NoComparablePairsError, "all labels are the same"),
        (lambda d: {**d, "qid": np.arange(80)}, NoComparablePairsError, "a separate query"),
        (lambda d: {**d, "qid": np.zeros(79)}, DataError, "qid has 79 entries but X has 80 rows"),
        (lambda d: {**d, "y": d["y"][:-1]}, ValueError, "inconsistent numbers of samples"),
        (lambda d: {**d, "y": np.where(d["y"] > 1, np.nan, 0.0)}, ValueError, "nan in row"),
        (lambda d: {**d, "sample_weight": np.ones(3)}, DataError, "sample_weight has 3 entries but X has 80 rows"),
        (lambda d: {**d, "sample_weight": -np.ones(80)}, DataError, "sample_weight is -1.0 in row 0"),
        (lambda d: {**d, "query_weight": np.arange(80.0)}, DataError, "query_weight varies within query"),
        (lambda d: {**d, "group": [40, 40]}, DataError, "not both"),
        (lambda d: {**d, "qid": None, "group": [40, 41]}, DataError, "add up to 81 but X has 80"),
        (lambda d: {**d, "X": np.zeros((0, 4)), "y": []}, ValueError, "0 sample"),
        (lambda d: {**d, "X": np.zeros(80)}, ValueError, "2D array"),
        (lambda d: {**d, "X": d["X"] * 1e200}, DataError, "overflow"),
    ],
)
def test_data_that_cannot_be(change, error, message):
    X, y, qid, _ = make_data()
    with pytest.raises(error, match=message):
        RankSVM().fit(**change({"X": X, "y": y, "qid": qid}))


def test_predict_before_fit_and_with_other_features():
    X, y, qid, _ = make_data()
    for call in (RankSVM().predict, RankSVM().rank):
        with pytest.raises(NotFittedError):
            call(X)
    with pytest.raises(NotFittedError):
        RankSVM().save("never written")
    with pytest.raises(ValueError, match="expecting 4 features"):
        fit(X, y, qid).predict(X[:, :3])


@pytest.mark.parametrize("constant", [1.0, 1e8, 1.5e9])
def test_a_large_constant_column_changes_nothing(constant):
    """Such as time stamps: in a Hessian of float32 products their round-off must not be larger than all else."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 64)).astype(np.float32)
    y = np.digitize(X @ rng.normal(size=64) / 8 + rng.normal(size=len(X)), [-1, 0, 1.5])
    X[:, 0], qid = constant, np.repeat(np.arange(500), 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate includes what round-off may hide
        model, without = RankSVM(C=1.0).fit(X, y, qid=qid), RankSVM(C=1.0).fit(X[:, 1:], y, qid=qid)
    np.testing.assert_allclose(model.coef_.ravel()[1:], without.coef_.ravel(), rtol=1e-3, atol=1e-5)
    assert abs(model.coef_.ravel()[0]) < 1e-2


def test_a_memory_limit_of_data_in_memory():
    data = make_ranking(n_queries=6, n_docs=5, n_features=3, random_state=0)
    for fit in (
        RankSVM(C=1e-3, memory_limit="1GB").fit,
        RankSVMCV(Cs=[1e-3], cv=2, memory_limit="1GB").fit,
        partial(regularization_path, Cs=[1e-3], memory_limit="1GB"),
    ):
        with pytest.warns(LikelyMistakeWarning, match="memory_limit='1GB' has no effect on X in memory") as shown:
            fit(data.X, data.y, qid=data.qid)
        assert shown[0].filename == __file__


def test_C_may_be_a_fraction():
    data = make_ranking(n_queries=6, n_docs=5, n_features=3, random_state=0)
    for solver in ("newton", "tron", "dual", "direct"):
        model = RankSVM(C=Fraction(1, 3), solver=solver).fit(data.X, data.y, qid=data.qid)
        expected = RankSVM(C=1 / 3, solver=solver).fit(data.X, data.y, qid=data.qid)
        np.testing.assert_array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize(("C", "scale"), [(1e8, 1.0), (1e-3, 1e150), (1.0, 1e20)])
@pytest.mark.parametrize("solver", ["newton", "tron"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_of_a_fit_that_did_not_converge_is_that_of_its_weights(C, scale, solver):
    """It was that of scores found from those of earlier points: up to 100 times another one."""
    random = np.random.default_rng(0)
    X, y, qid = random.normal(size=(60, 4)), random.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    X[:, 2] *= scale
    for max_iter in (3, 10, 200):
        model = RankSVM(C=C, solver=solver, max_iter=max_iter, tol=1e-12).fit(X, y, qid=qid)
        expected = 0.5 * model.coef_ @ model.coef_ + C * ExplicitPairs(y, qid).loss(model.predict(X))
        assert abs(model.objective_ - expected) <= 1e-9 * expected


@pytest.mark.parametrize("solver", ["newton", "tron", "dual", "direct"])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_extreme_values_are_fitted_or_refused(loss, solver):
    """They ended in LinAlgError, OverflowError, RuntimeWarning and certificates that were NaN."""
    random, refused = np.random.default_rng(0), []
    y, qid = random.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    for scale in (1e20, 1e100, 1e150, 1e160, 1e300):
        for C in (1.0, 1e-300, 1e8, 1e300):
            for rows in (slice(7, 8), slice(None)):
                X = random.normal(size=(60, 4))
                X[rows, 2] *= scale
                model = RankSVM(C=C, loss=loss, solver=solver, max_iter=30)
                try:
                    scores = model.fit(X, y, qid=qid).predict(X)
                except DataError as error:
                    refused.append(str(error))
                    continue
                assert np.isfinite([model.objective_, model.duality_gap_]).all()
                assert np.isfinite(scores).all()
    assert all("float64" in message for message in refused)


def make_wide(n_queries, n=80, n_features=300):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, n_features))
    y = np.digitize(X @ random.normal(size=n_features), [-15.0, 0.0, 15.0])
    return X, y, np.sort(random.integers(0, n_queries, n))


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber", "logistic"])
@pytest.mark.parametrize("n_queries", [1, 5])
@pytest.mark.parametrize("sparse", [False, True])
def test_direct_steps_reach_the_optimum_of_tron(loss, n_queries, sparse):
    X, y, qid = make_wide(n_queries)
    rows = sp.csr_matrix(X) if sparse else X
    options = {"loss": loss, "tol": 1e-6}
    model, expected = (RankSVM(0.01, solver=name, **options).fit(rows, y, qid=qid) for name in ("direct", "tron"))
    assert model.solver_ == "direct"
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-6)
    assert model.n_iter_ <= expected.n_iter_
    path = regularization_path(rows, y, qid=qid, Cs=[1e-3, 1e-2], solver="direct", **options)
    assert path.objectives[-1] == pytest.approx(model.objective_, rel=2e-6)


def test_direct_steps_along_a_path_take_about_as_many_as_single_fits():
    random = np.random.default_rng(0)
    X, y, Cs = random.normal(size=(200, 2000)), random.permutation(200), [1e-4, 1e-3, 0.03, 1.0]
    options = {"loss": "hinge", "solver": "direct"}
    path = regularization_path(X, y, qid=np.zeros(200), Cs=Cs, **options)
    assert path.converged.all()
    n_single = sum(RankSVM(C=C, **options).fit(X, y, qid=np.zeros(200)).n_iter_ for C in Cs)
    assert path.n_iter.sum() <= 2 * n_single


@pytest.fixture(params=[0.0, np.inf], ids=["direct steps first", "another solver first"])
def first_solver(request, monkeypatch):
    """Direct steps begin wherever they may, or nowhere."""
    monkeypatch.setattr("ranksvm.fits.linear.DIRECT_SHARE", request.param)
    return "direct" if request.param == 0.0 else "other"


def make_correlated(n_queries, n_features=300):
    X, y, qid = make_wide(n_queries)
    random = np.random.default_rng(3)
    factors = X[:, :20] * np.linspace(1.0, 0.1, 20)
    return factors @ random.normal(size=(20, n_features)) + 0.05 * random.normal(size=(80, n_features)), y, qid


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_auto_begins_with_direct_steps_if_rows_are_correlated(loss):
    X, y, qid = make_correlated(20)
    model = RankSVM(C=10.0, loss=loss).fit(X, y, qid=qid)
    assert (model.solver_, model.converged_) == ("direct", True)
    expected = RankSVM(C=10.0, loss=loss, solver="direct").fit(X, y, qid=qid)
    assert model.n_iter_ == expected.n_iter_  # no iteration of another solver
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    # at a small C, other solvers are faster
    small = RankSVM(C=1e-6, loss=loss).fit(X, y, qid=qid)
    assert (small.solver_, small.converged_) == ("dual" if loss == "hinge" else "tron", True)
    # independent rows: the dual
    assert RankSVM(C=10.0, loss=loss).fit(*make_wide(20)[:2], qid=qid).solver_ == "dual"
    # sparse rows are not examined
    sparse = sp.csr_matrix(np.hstack([X, np.zeros((80, 2000))]))  # an explicit Hessian would be too large
    assert RankSVM(C=1e-6, loss=loss).fit(sparse, y, qid=qid).solver_ == "dual"
    # the first fit of a path chooses, the others begin at its solution
    path = regularization_path(X, y, qid=qid, Cs=[1.0, 10.0], loss=loss)
    assert path.converged.all()
    assert path.objectives[-1] == pytest.approx(model.objective_, rel=2e-4)


def begins_with_direct_steps(X, y, qid, **options):
    model = RankSVM(**options).fit(X, y, qid=qid)
    expected = RankSVM(solver="direct", **options).fit(X, y, qid=qid)
    return (model.solver_, model.n_iter_) == ("direct", expected.n_iter_)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_rows_must_be_correlated_to_replace_the_dual(loss, monkeypatch):
    X, y, qid = make_correlated(20)
    X += np.random.default_rng(5).normal(size=X.shape)  # the mean squared cosine is 0.09
    options = {"C": 10.0, "loss": loss}
    assert begins_with_direct_steps(X, y, qid, **options)
    monkeypatch.setattr("ranksvm.fits.linear.FEW_DIRECTIONS", 0.1)
    assert not begins_with_direct_steps(X, y, qid, **options)
    # also if the dual is expected to need many epochs, or long ones
    work = (1e4, 0.0) if loss == "squared_hinge" else (0.0, 1e4)
    for name, value in (("CORRELATION_EPOCHS", (20.0, 0.0)), ("FEW_EPOCHS", 1e3), ("EPOCH_WORK", work)):
        with monkeypatch.context() as patched:
            patched.setattr(f"ranksvm.fits.linear.{name}", value)
            assert begins_with_direct_steps(X, y, qid, **options), name
    # independent rows, but too many pairs for the dual
    if loss == "squared_hinge":
        assert begins_with_direct_steps(*make_wide(1), C=1e4)


def test_auto_takes_the_dual_for_more_pairs_if_rows_are_independent(monkeypatch):
    X, y, qid = make_wide(3)  # 10 pairs per document
    model = RankSVM(C=10.0, warm_start=True).fit(X, y, qid=qid)
    assert (model.solver_, model.converged_) == ("dual", True)
    assert RankSVM(C=1e-6).fit(X, y, qid=qid).solver_ == "tron"
    assert RankSVM(C=10.0, loss="logistic").fit(X, y, qid=qid).solver_ == "direct"  # this loss has no dual here
    assert begins_with_direct_steps(*make_correlated(3), C=10.0)
    path = regularization_path(X, y, qid=qid, Cs=[1.0, 10.0])
    assert path.objectives[-1] == pytest.approx(model.objective_, rel=2e-4)
    # from weights, the dual cannot start
    objective = model.objective_
    model.fit(X, y, qid=qid)
    assert model.solver_ != "dual"
    assert model.history_["objective"][0] == pytest.approx(objective)
    monkeypatch.setattr("ranksvm.fits.linear.MANY_DUAL_PAIRS", 8.0)
    assert begins_with_direct_steps(X, y, qid, C=10.0)


@pytest.mark.parametrize("make", [make_wide, make_correlated])
def test_the_largest_C_of_a_path_chooses_the_solver(make, caplog):
    X, y, qid = make(3)
    assert RankSVM(C=1e-6).fit(X, y, qid=qid).solver_ == "tron"
    with caplog.at_level("INFO", logger="ranksvm"):
        path = regularization_path(X, y, qid=qid, Cs=[1e-6, 10.0])
    assert "follows" not in caplog.text  # no other solver
    fit = RankSVM(C=10.0).fit(X, y, qid=qid)
    assert path.converged.all()
    assert path.objectives[-1] == pytest.approx(fit.objective_, rel=2e-4)


def test_auto_counts_the_weights_of_pairs_to_begin_with_direct_steps():
    X, y, qid = make_correlated(20)
    model = RankSVM(C=10.0).fit(X, y, qid=qid, query_weight=np.full(80, 1e-7))
    assert (model.solver_, model.converged_) == ("tron", True)


def test_auto_goes_on_with_the_dual_variables_of_the_last_fit():
    X, y, qid = make_correlated(20)
    model = RankSVM(C=1e-6, loss="hinge", warm_start=True).fit(X, y, qid=qid)
    assert (model.solver_, model.fit(X, y, qid=qid).solver_) == ("dual", "dual")
    model.set_params(C=10.0).fit(X, y, qid=qid)
    expected = RankSVM(C=10.0, loss="hinge").fit(X, y, qid=qid)
    assert (model.converged_, model.objective_) == (True, pytest.approx(expected.objective_, rel=2e-4))


def test_the_dual_starts_from_0_if_it_was_chosen_by_the_user_or_signs_are_given():
    X, y, qid = make_wide(20)
    X = sp.csr_matrix(np.hstack([X, np.zeros((80, 2000))]))  # an explicit Hessian would be too large
    for options in ({"solver": "dual"}, {"monotone": "increasing"}):
        model = RankSVM(C=1.0, loss="hinge", solver="tron", warm_start=True).fit(X, y, qid=qid)
        model.set_params(**{"solver": "auto", **options}).fit(X, y, qid=qid)
        assert (model.solver_, model.history_["objective"][0]) == ("dual", model.n_pairs_)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("n_queries", [1, 20])
def test_auto_starts_from_weights_of_direct_steps(loss, n_queries):
    """With few pairs, "auto" chose the dual, which cannot start from weights: the fit began at 0."""
    X, y, qid = make_correlated(n_queries)
    model = RankSVM(C=10.0, loss=loss, warm_start=True).fit(X, y, qid=qid)
    assert model.solver_ == "direct"
    n_iter, objective = model.n_iter_, model.objective_
    model.fit(X, y, qid=qid)
    assert (model.solver_, model.n_iter_ < n_iter) == ("direct", True)
    assert model.history_["objective"][0] == pytest.approx(objective)


def test_auto_takes_direct_steps_for_fewer_rows_than_features(monkeypatch):
    monkeypatch.setattr("ranksvm.fits.linear.DIRECT_SHARE", np.inf)
    X, y, qid = make_wide(1)
    sparse = sp.csr_matrix(np.hstack([X, np.zeros((80, 2000))]))  # an explicit Hessian would be too large
    for rows in (X, sparse):
        model = RankSVM(C=1e4, tol=1e-6).fit(rows, y, qid=qid)
        assert (model.solver_, model.converged_) == ("direct", True)
        assert model.history_["hessian_products"][-1] > model.n_iter_ > 1
        assert RankSVM(C=1e-4).fit(rows, y, qid=qid).solver_ == "tron"
        path = regularization_path(rows, y, qid=qid, Cs=[1e-4, 1e4], tol=1e-6)
        assert path.objectives[-1] == pytest.approx(model.objective_, rel=2e-6)
    assert RankSVM(C=1e4).fit(X[:, :70], y, qid=qid).solver_ != "direct"
    # few pairs: the dual, which begins with the fewest multiplications
    assert RankSVM(C=1.0).fit(X, y, qid=np.arange(80) // 4).solver_ == "dual"


def test_direct_steps_need_memory(monkeypatch):
    X, y, qid = make_wide(1)
    monkeypatch.setattr("ranksvm.fits.linear.memory_bytes", lambda limit: 0)
    assert RankSVM(C=1e4).fit(X, y, qid=qid).solver_ == "direct"  # it takes little for so few rows
    monkeypatch.setattr("ranksvm.fits.linear.FEW_BYTES", 0)
    assert RankSVM(C=1e4).fit(X, y, qid=qid).solver_ == "tron"
    monkeypatch.setattr("ranksvm.fits.linear.memory_bytes", lambda limit: 1 << 30)
    assert RankSVM(C=1e4).fit(X, y, qid=qid).solver_ == "direct"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_solvers_that_take_over_share_max_iter_and_keep_the_better_solution(first_solver):
    X, y, qid = make_wide(1)
    options = {"C": 1e4, "tol": 1e-6}
    whole = RankSVM(**options).fit(X, y, qid=qid)
    assert whole.solver_ == "direct"
    before = np.inf
    for max_iter in range(1, whole.n_iter_ + 1):
        model = RankSVM(**options, max_iter=max_iter).fit(X, y, qid=qid)
        assert model.n_iter_ <= max_iter
        assert model.n_iter_ == len(model.history_["objective"]) - 1
        assert model.objective_ == model.history_["objective"][-1] <= before
        before = model.objective_
    assert model.converged_


def test_direct_steps_take_over_from_a_slow_dual(monkeypatch):
    X, y, qid = make_wide(20)
    model = RankSVM(C=1.0, loss="hinge").fit(X, y, qid=qid)
    assert (model.solver_, model.converged_) == ("dual", True)
    for name, value in (("HINGE_INVERSES", 0), ("HINGE_INVERSES", 1e9), ("MAX_EPOCHS", 5), ("DUAL_SHARE", 0.0)):
        with monkeypatch.context() as patched:
            patched.setattr(f"ranksvm.fits.linear.{name}", value)
            model = RankSVM(C=1.0, loss="hinge").fit(X, y, qid=qid)
        assert (model.solver_, model.converged_) == ("dual" if name == "HINGE_INVERSES" and value else "direct", True)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tron_continues_where_round_off_stops_direct_steps(first_solver):
    X, y, qid = make_wide(1)
    assert RankSVM(C=1e6, tol=1e-12).fit(X, y, qid=qid).solver_ == "tron"
    assert RankSVM(C=1e6, tol=1e-12, solver="direct").fit(X, y, qid=qid).solver_ == "direct"


def has_a_consistent_trace(model):
    trace = model.history_
    last = trace["objective"][-1], trace["duality_gap"][-1]
    return {model.n_iter_ + 1} == {len(values) for values in trace.values()} and last == (
        model.objective_,
        model.duality_gap_,
    )


@pytest.mark.parametrize("C", [1e8, 1e16])
def test_the_dual_continues_where_round_off_stops_direct_steps_far_from_the_solution(
    C, first_solver, monkeypatch, caplog
):
    monkeypatch.setattr("ranksvm.fits.linear.SMOOTH_INVERSES", 1)
    monkeypatch.setattr("ranksvm.fits.linear.DUAL_SHARE", 0.5)
    monkeypatch.setattr("ranksvm.fits.linear.FEW_DIRECTIONS", 0.0)
    X, y, qid = make_wide(20)
    with caplog.at_level("INFO", logger="ranksvm"):
        model = RankSVM(C=C).fit(X, y, qid=qid)
    assert (model.solver_, model.converged_) == ("dual", True)
    assert ("direct follows" in caplog.text) == (first_solver == "other")
    assert len(model.pair_alpha_) == model.n_pairs_
    assert model.history_["hessian_products"][-1] > 0  # of direct steps
    assert has_a_consistent_trace(model)


@pytest.mark.parametrize("C", [1e10, 1e14])
def test_a_dual_with_many_pairs_continues_where_round_off_stops_direct_steps(C, caplog):
    """TRON began instead: it took hundreds of steps, or did not converge."""
    X, y, qid = make_wide(3)
    with caplog.at_level("INFO", logger="ranksvm"):
        model = RankSVM(C=C).fit(X, y, qid=qid)
    assert (model.solver_, model.converged_) == ("dual", True)
    assert "direct follows" in caplog.text
    assert model.n_iter_ < 100
    assert has_a_consistent_trace(model)


@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
@pytest.mark.parametrize("n_docs", [10, 50, 200])
def test_the_dual_solves_unscaled_features_if_round_off_stops_direct_steps(n_docs, loss, caplog):
    # The relative gap stays near 1 until the objective has fallen to about its minimum, which is 1e-7 or less.
    random = np.random.default_rng(1)
    X, y = np.exp(3.5 * random.normal(size=(200, 800))), random.integers(0, 5, size=200)
    with caplog.at_level("INFO", logger="ranksvm.fits"):
        model = RankSVM(loss=loss).fit(X, y, qid=np.arange(200) // n_docs)
    assert (model.solver_, model.converged_) == ("dual", True)
    assert "dual follows" in caplog.text
    assert has_a_consistent_trace(model)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_solver_follows_if_round_off_stops_the_dual_of_the_hinge():
    X, y, qid = make_wide(20)
    model = RankSVM(C=1e4, loss="hinge", tol=1e-9).fit(X, y, qid=qid)
    assert (model.solver_, model.converged_) == ("dual", False)
    for solver in ("tron", "direct"):
        other = RankSVM(C=1e4, loss="hinge", tol=1e-9, solver=solver).fit(X, y, qid=qid)
        assert other.duality_gap_ > model.duality_gap_


def test_tron_begins_again_where_round_off_stops_direct_steps_far_from_the_solution(first_solver, monkeypatch):
    monkeypatch.setattr("ranksvm.fits.linear.DUAL_NUMBERS", 0.0)  # too many pairs for the dual
    X, y, qid = make_wide(1)
    model = RankSVM(C=1e8).fit(X, y, qid=qid)
    assert (model.solver_, model.converged_) == ("tron", True)
    assert has_a_consistent_trace(model)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("n_queries", "C"), [(1, 1e4), (20, 1e8)])
def test_max_iter_is_for_all_solvers_of_auto_together(n_queries, C, first_solver):
    X, y, qid = make_wide(n_queries)
    for max_iter in range(1, 25):
        model = RankSVM(C=C, tol=1e-6, max_iter=max_iter).fit(X, y, qid=qid)
        assert model.n_iter_ <= max_iter
        assert has_a_consistent_trace(model)


def test_an_interrupt_as_direct_steps_begin_keeps_the_model_of_tron(monkeypatch):
    monkeypatch.setattr("ranksvm.fits.linear.DIRECT_SHARE", np.inf)
    X, y, qid = make_wide(1)
    solve = newton_cg

    def interrupted_solve(*args, interrupted, **options):
        interrupted.set()
        return solve(*args, interrupted=interrupted, **options)

    monkeypatch.setattr("ranksvm.fits.linear.newton_cg", interrupted_solve)
    model = RankSVM(C=1e4, tol=1e-6, keep_on_interrupt=True).fit(X, y, qid=qid)
    assert model.status_.startswith("Interrupted")
    assert (model.solver_, model.coef_.any()) == ("tron", True)
    assert has_a_consistent_trace(model)


def test_direct_steps_are_for_weights_of_any_sign():
    X, y, qid = make_wide(1)
    with pytest.raises(OptionError, match="solver='direct' is for weights of any sign, without monotone"):
        RankSVM(solver="direct", monotone="increasing").fit(X, y, qid=qid)
