"""Where rows are kept and in which form they are read; the choice of `solver="auto"`, by size, for every form."""

import numpy as np
import pytest
import scipy.sparse as sp

from data_sizes import Size, dense
from ranksvm import RankSVM, make_ranking
from ranksvm.data import DenseDesign, SparseDesign
from ranksvm.estimators.base.ranker import linear_options
from ranksvm.exceptions import OptionError
from ranksvm.fits import linear
from ranksvm.fits.linear import choose_solver
from ranksvm.fits.training_set import TrainingArguments, training_set
from ranksvm.losses import LossSpec


@pytest.mark.parametrize(
    ("size", "solver"),
    [
        (dense(300, 10), "newton"),
        (dense(300, 46), "newton"),
        (dense(1_000, 46), "newton"),
        (dense(100_000, 10), "newton"),
        (dense(10_000, 46), "newton"),
        (dense(10_000, 136), "newton"),
        (dense(20_000, 136), "newton"),
        (dense(100_000, 136), "newton"),
        (dense(1_000_000, 136), "newton"),
        (dense(1_000, 245), "adaptive"),
        (dense(100_000, 768), "adaptive"),
        (dense(400_000, 1024), "adaptive"),
        (dense(400_000, 2000), "adaptive"),
        (dense(400_000, 2001), "tron"),
        (Size(52_000, 44, 12.0 * 20, dense=False), "newton"),
        (Size(20_000, 300, 12.0 * 15, dense=False), "adaptive"),
        (Size(1_000_000, 1_000_000, 12.0 * 30, dense=False), "tron"),
    ],
)
def test_solver_by_size(size, solver):
    assert choose_solver(size).solver == solver


@pytest.mark.parametrize(
    ("part", "fewest", "most", "form"),
    [
        (0.5, 0, 1 << 30, DenseDesign),
        (0.2, 0, 1 << 30, SparseDesign),  # few values
        (0.5, 0, 1000, SparseDesign),  # too large
        (0.5, 1 << 30, 1 << 31, SparseDesign),  # too small to matter
    ],
)
def test_sparse_rows_of_many_values_are_read_as_dense_ones(part, fewest, most, form, monkeypatch):
    monkeypatch.setattr(linear, "DENSE_BYTES", (fewest, most))
    data = make_ranking(20, 30, 8, random_state=0)
    X = sp.csr_matrix(data.X * (np.random.default_rng(0).random(data.X.shape) < part))
    found = training_set(TrainingArguments(X, data.y, qid=data.qid), linear_options(RankSVM()))
    assert isinstance(linear.linear_term(found, LossSpec("squared_hinge"), "auto").design, form)


def test_fits_are_the_same_in_either_form(monkeypatch):
    data = make_ranking(20, 30, 8, random_state=0)
    X = sp.csr_matrix(data.X * (np.random.default_rng(0).random(data.X.shape) < 0.5))
    weights = []
    for fewest in (0, 1 << 30):
        monkeypatch.setattr(linear, "DENSE_BYTES", (fewest, 1 << 31))
        weights.append(RankSVM(C=0.1, tol=1e-12).fit(X, data.y, qid=data.qid).coef_)
    np.testing.assert_allclose(*weights, rtol=1e-6)
    assert sp.issparse(X)


def test_a_huge_feature_number_is_refused_early(monkeypatch):
    monkeypatch.setattr("ranksvm._util.memory.free_memory", lambda: 10**9)
    X = sp.csr_matrix((np.ones(2), ([0, 1], [0, 2 * 10**9 - 1])), shape=(2, 2 * 10**9))
    with pytest.raises(OptionError, match=r"2,000,000,000 features.*: 32 GB, more than 500 MB .*consecutively"):
        RankSVM().fit(X, [0, 1], qid=[1, 1])
