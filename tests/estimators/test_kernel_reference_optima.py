"""Kernel models of real data against optima that were found by brute force over explicit pairs (shared/reference)."""

import csv
import functools

import numpy as np
import pytest

from ranksvm import KernelRankSVM, read_letor
from ranksvm.metrics import evaluate

ROWS = [("2^-5", "2^0"), ("2^-3", "2^-3"), ("2^-1", "2^0")]


@functools.cache
def load(path):
    return read_letor(path, dtype=np.float64)


def power(text):
    return 2.0 ** int(text.removeprefix("2^"))


@pytest.fixture(scope="module")
def reference(shared_data):
    path = shared_data.parent / "reference" / "kernel_l2_optima.csv"
    if not path.is_file():
        pytest.skip(f"no reference optima: {path} is absent")
    with path.open() as file:
        return {(row["gamma"], row["C"]): row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def parts(shared_data):
    return [load(shared_data / "MQ2008" / "Fold1" / f"{part}.txt.gz") for part in ("train", "test")]


def fitted(parts, gamma, C, **options):
    train = parts[0]
    return KernelRankSVM(power(C), gamma=power(gamma), **options).fit(train.X, train.y, qid=train.qid)


def test_every_row_of_the_reference_is_tested(reference):
    assert set(reference) == set(ROWS)


@pytest.mark.parametrize(("gamma", "C"), ROWS)
def test_optima(gamma, C, reference, parts):
    row, test = reference[gamma, C], parts[1]
    optimum = float(row["optimal_objective"])
    model = fitted(parts, gamma, C, tol=1e-6)
    assert model.converged_, model.status_
    assert model.duality_gap_ <= 1e-6 * model.objective_
    # Q is rounded to float32
    assert model.objective_ == pytest.approx(optimum, rel=1e-5)
    figures = figures_of(model, test)
    # two documents of a query that change places move the mean of 156 queries by up to 1 / 156
    assert figures["mean_ndcg"] == pytest.approx(float(row["test_letor_mean_ndcg"]), abs=2e-3)
    assert figures["pairwise_accuracy"] == pytest.approx(float(row["test_pairwise_accuracy"]), abs=1e-4)


@pytest.mark.parametrize(("gamma", "C"), [ROWS[0], *(pytest.param(*row, marks=pytest.mark.slow) for row in ROWS[1:])])
def test_all_digits_of_the_reference_in_float64(gamma, C, reference, parts):
    row, test = reference[gamma, C], parts[1]
    optimum = float(row["optimal_objective"])
    # certificates include what round-off may hide, up to 1.2e-8 of these objectives
    model = fitted(parts, gamma, C, tol=2e-8, kernel_dtype="float64")
    assert model.converged_, model.status_
    assert -1e-9 * optimum <= model.objective_ - optimum <= model.duality_gap_ + 1e-9 * optimum
    figures = figures_of(model, test)
    assert figures["mean_ndcg"] == pytest.approx(float(row["test_letor_mean_ndcg"]), abs=1e-6)
    assert figures["pairwise_accuracy"] == pytest.approx(float(row["test_pairwise_accuracy"]), abs=1e-6)


def figures_of(model, test):
    metrics = ["mean_ndcg", "pairwise_accuracy"]
    return evaluate(test.y, model.predict(test.X), test.qid, metrics, convention="letor").means


@pytest.mark.parametrize(("gamma", "C", "most"), [("2^-5", "2^0", 40), ("2^-1", "2^0", 250)])
def test_products_with_the_kernel_matrix(gamma, C, most, parts):
    model = fitted(parts, gamma, C)
    assert model.converged_, model.status_
    assert model.n_kernel_products_ <= most


@pytest.mark.slow
def test_certified_where_pairs_are_nearly_separated(parts):
    model = fitted(parts, "2^-1", "2^5")
    assert model.converged_, model.status_
    assert model.n_iter_ <= 40
    assert model.n_kernel_products_ <= 1000
