"""Real data against optima that were found by brute force over explicit pairs (shared/reference)."""

import csv
import functools

import numpy as np
import pytest

from oracle import ExplicitPairs
from ranksvm import RankSVM, read_letor
from ranksvm.metrics import evaluate


@functools.cache
def load(path):
    return read_letor(path, dtype=np.float64)


def reference_rows(shared_data, name):
    path = shared_data.parent / "reference" / name
    if not path.is_file():
        pytest.skip(f"no reference optima: {path} is absent")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {(row["dataset"], row["C"]): row for row in rows}


@pytest.fixture(scope="module")
def reference(shared_data):
    return reference_rows(shared_data, "linear_l2_optima.csv")


@pytest.fixture(scope="module")
def hinge_reference(shared_data):
    return reference_rows(shared_data, "linear_l1_optima.csv")


def power(text):
    return 2.0 ** int(text.removeprefix("2^"))


ROWS = [(name, C) for name in ("MQ2008", "OHSUMED") for C in ("2^-15", "2^-10", "2^-5", "2^0", "2^7")]
ROWS += [("LightGBM-rank", C) for C in ("2^-10", "2^-5", "2^0", "2^7")]
ROWS += [("MQ2007-partial", C) for C in ("2^-15", "2^-10", "2^-5", "2^0", "2^7")]
CASES = [(*case, solver) for case in ROWS for solver in ("newton", "tron")]


def test_every_row_of_the_reference_is_tested(reference):
    assert set(reference) == set(ROWS)


@pytest.mark.parametrize(("name", "C", "solver"), CASES)
def test_optimum_and_test_figures(name, C, solver, reference, shared_data):
    row = reference[name, C]
    train, test = (load(shared_data / name / "Fold1" / f"{part}.txt.gz") for part in ("train", "test"))
    optimum = float(row["optimal_objective"])
    options = {"C": power(C), "solver": solver}
    default = RankSVM(**options).fit(train.X, train.y, qid=train.qid)
    assert default.n_pairs_ == int(row["n_pairs"])
    # the reference is rounded to about 15 digits, and may itself be above the optimum in the last ones
    assert -1e-9 * optimum <= default.objective_ - optimum <= 1e-4 * optimum
    assert default.objective_ - optimum <= default.duality_gap_ + 1e-9 * optimum
    tight = RankSVM(**options, tol=1e-8).fit(train.X, train.y, qid=train.qid)
    assert tight.converged_, tight.status_
    assert tight.objective_ == pytest.approx(optimum, rel=1e-6)
    assert np.linalg.norm(tight.coef_) == pytest.approx(float(row["norm_w"]), rel=1e-3)
    metrics = ["mean_ndcg", "pairwise_accuracy"]
    means = evaluate(test.y, tight.predict(test.X), test.qid, metrics, convention="letor").means
    assert means["mean_ndcg"] == pytest.approx(float(row["test_letor_mean_ndcg"]), abs=1e-4)
    assert means["pairwise_accuracy"] == pytest.approx(float(row["test_pairwise_accuracy"]), abs=1e-4)


HINGE_ROWS = [("MQ2008", C) for C in ("2^-12", "2^-8", "2^-5")]
HINGE_ROWS += [("OHSUMED", C) for C in ("2^-14", "2^-10")]
HINGE_ROWS += [("LightGBM-rank", C) for C in ("2^-8", "2^-5")]


def test_every_row_of_the_hinge_reference_is_tested(hinge_reference):
    assert set(hinge_reference) == set(HINGE_ROWS)


@pytest.mark.parametrize("solver", ["newton", "tron"])
@pytest.mark.parametrize(("name", "C"), HINGE_ROWS)
def test_optimum_and_test_figures_of_the_hinge_loss(name, C, solver, hinge_reference, shared_data):
    row = hinge_reference[name, C]
    train, test = (load(shared_data / name / "Fold1" / f"{part}.txt.gz") for part in ("train", "test"))
    # the optimum is known to lie between the two: they agree to about eight digits
    lowest, optimum = float(row["dual_objective"]), float(row["primal_objective"])
    for tol in (1e-4, 1e-6):
        model = RankSVM(C=power(C), loss="hinge", solver=solver, tol=tol).fit(train.X, train.y, qid=train.qid)
        assert model.converged_, model.status_
        assert model.n_pairs_ == int(row["n_pairs"])
        assert lowest - 1e-9 * optimum <= model.objective_ <= (1.0 + tol) * optimum
        assert model.objective_ - optimum <= model.duality_gap_
    assert np.linalg.norm(model.coef_) == pytest.approx(float(row["norm_w"]), rel=2e-3)
    means = evaluate(
        test.y, model.predict(test.X), test.qid, ["mean_ndcg", "pairwise_accuracy"], convention="letor"
    ).means
    assert means["mean_ndcg"] == pytest.approx(float(row["test_letor_mean_ndcg"]), abs=2e-3)
    assert means["pairwise_accuracy"] == pytest.approx(float(row["test_pairwise_accuracy"]), abs=5e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("solver", "C"), [("newton", "2^-10"), ("newton", "2^0"), ("newton", "2^7"), ("tron", "2^-10")]
)
def test_features_of_very_different_size_reach_the_same_certificate(solver, C, seed, shared_data):
    train = load(shared_data / "OHSUMED" / "Fold1" / "train.txt.gz")
    scales = 10.0 ** np.random.default_rng(seed).integers(-3, 5, train.X.shape[1])
    for tol in (1e-4, 1e-8):
        model = RankSVM(C=power(C), solver=solver, tol=tol).fit(train.X * scales, train.y, qid=train.qid)
        assert model.converged_, model.status_
        assert model.duality_gap_ <= tol * model.objective_


def test_random_unit_powers_in_float32(shared_data):
    """float32 sums never reached the tolerance on such features: storage may be float32, sums are float64."""
    train = load(shared_data / "OHSUMED" / "Fold1" / "train.txt.gz")
    scales = 10.0 ** np.random.default_rng(9).integers(-3, 5, train.X.shape[1])
    model = RankSVM(C=1e-3, tol=1e-8).fit((train.X * scales).astype(np.float32), train.y, qid=train.qid)
    assert model.converged_, model.status_


@pytest.mark.parametrize("tol", [1e-4, pytest.param(1e-8, marks=pytest.mark.slow)])
def test_sparse_word_pairs(tol, shared_data):
    """280,000 hashed features: TRON and the dual, which auto takes, each with its own certificate."""
    folder = shared_data / "WikiQA-wordpairs" / "Fold1"
    train = read_letor(folder / "train.txt.gz")
    model = RankSVM(C=1.0, solver="tron", tol=tol).fit(train.X, train.y, qid=train.qid)
    dual = RankSVM(C=1.0, tol=tol, max_iter=2000).fit(train.X, train.y, qid=train.qid)
    assert dual.solver_ == "dual"
    assert 0 <= dual.duality_gap_ <= tol * dual.objective_
    assert abs(dual.objective_ - model.objective_) <= max(dual.duality_gap_, model.duality_gap_)
    assert model.converged_, model.status_
    assert 0 <= model.duality_gap_ <= tol * model.objective_
    X = train.X.astype(np.float64)
    exact = model.coef_ + X.T @ loss_gradient(train, X @ model.coef_)
    # and what round-off may hide
    gap = 0.5 * exact @ exact
    assert gap <= model.duality_gap_ <= gap + 1e-8 * model.objective_


def loss_gradient(data, scores):
    """With respect to the scores, query by query over explicit pairs."""
    out = np.zeros(len(scores))
    _, query = np.unique(data.qid, return_inverse=True)
    by_query = np.argsort(query, kind="stable")
    for rows in np.split(by_query, np.flatnonzero(np.diff(query[by_query])) + 1):
        out[rows] = ExplicitPairs(data.y[rows], np.zeros(len(rows))).loss_gradient(scores[rows])
    return out
