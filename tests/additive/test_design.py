"""The design matrix of codes, against explicitly made columns."""

import pickle

import numpy as np
import pytest
import scipy.sparse

from ranksvm._compiled import coded
from ranksvm.additive import (
    AdditiveDesign,
    AdditiveTerms,
    codes_of,
    feature_bins,
    function as function_module,
    level_shares,
)
from ranksvm.additive.columns import Pair, level_scales
from ranksvm.additive.function import filled
from ranksvm.additive.interactions import coarse_pairs
from ranksvm.data import as_design_matrix


def explicit_columns(X, terms):
    """Every column of the design matrix, from the definition."""
    columns = [X * terms.feature_scales] if terms.linear else []

    def of_levels(bins, shares, values, step_weight):
        levels = bins.levels_of(values)
        found = np.zeros((len(values), bins.n_levels - 1))
        for v, scale in enumerate(level_scales(bins, shares, step_weight)):
            if v < bins.n_steps:
                found[:, v] = scale * (values >= bins.cuts[v])
            else:
                found[:, v] = scale * (levels == v + 1)
        return found

    raw = terms_raw[id(terms)]
    for j, (bins, shares) in enumerate(zip(terms.bins, terms.shares, strict=True)):
        columns.append(of_levels(bins, shares, raw[:, j], terms.step_weight))
    for pair in terms.pairs:
        first = of_levels(pair.first_bins, terms.coarse_shares(pair.first, pair.first_bins), raw[:, pair.first], 1.0)
        second = of_levels(
            pair.second_bins, terms.coarse_shares(pair.second, pair.second_bins), raw[:, pair.second], 1.0
        )
        columns.append((first[:, :, None] * second[:, None, :]).reshape(len(X), -1))
    return np.hstack(columns)


# the values with NaN, which the explicit columns need
terms_raw = {}


def problem(dtype=np.float64, linear=True, pairs=True, seed=0, sparse=False):
    random = np.random.default_rng(seed)
    X = random.normal(size=(300, 6)).astype(dtype)
    X[:, 1] = random.integers(0, 2, 300)
    X[:, 2] = 1.0
    X[:, 3] = random.integers(0, 5, 300)
    if not sparse:
        X[random.random(300) < 0.2, 4] = np.nan
    else:
        X[random.random(X.shape) < 0.6] = 0.0
    bins = feature_bins(X, 9, categorical=[3])
    codes = codes_of(bins, X)
    scales = random.random(6)
    terms = AdditiveTerms(bins, level_shares(bins, codes), scales, np.nanmean(X, axis=0).astype(float), 0.7, linear)
    if pairs:
        terms = terms.with_pairs(coarse_pairs(terms, np.array([[0, 4], [3, 5], [1, 3]]), 4))
    terms_raw[id(terms)] = X
    Z = filled(X, terms.fill)
    features = as_design_matrix(scipy.sparse.csr_array(Z) if sparse else Z)
    return AdditiveDesign.of(features, codes, terms), explicit_columns(Z, terms)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_the_columns(dtype, linear, pairs, sparse):
    design, Z = problem(dtype, linear, pairs, sparse=sparse)
    random = np.random.default_rng(1)
    w, u = random.normal(size=design.n_features), random.normal(size=300)
    for rows in (None, random.permutation(300)[:77].astype(np.int64)):
        some = Z if rows is None else Z[rows]
        products = design.products(rows)
        stop = len(some) - 2
        v, total = np.empty(stop - 3), np.zeros(len(design.vector_basis.expanded(w)))
        expected = some[3:stop].T @ u[3:stop]
        products.scores(3, stop, design.vector_basis.expanded(w), v)
        products.accumulate(3, stop, u[3:stop], total)
        total = design.vector_basis.contracted(total)
        assert np.allclose(v, some[3:stop] @ w, rtol=0, atol=1e-6 if dtype == np.float32 else 1e-12)
        assert np.allclose(total, expected, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-11)
        out = np.full((stop - 3, design.n_features + 2), 7.0)
        design.gather(rows, 3, stop, out)
        assert np.allclose(out[:, :-2], some[3:stop], rtol=0, atol=1e-6 if dtype == np.float32 else 1e-15)
        assert not out[:, -2:].any()
        single = np.empty((stop - 3, design.n_features), dtype=np.float32)
        design.gather(rows, 3, stop, single)
        assert np.allclose(single, some[3:stop], rtol=0, atol=1e-6)


def test_squares_largest_values_and_parts():
    design, Z = problem()
    u = np.random.default_rng(2).random(300)
    out = np.zeros(design.n_features)
    design.accumulate_squares(None, 0, 300, u, out)
    assert np.allclose(out, (Z * Z).T @ u)
    assert (np.abs(Z).max(axis=0) <= design.largest() + 1e-15).all()
    rows = np.array([5, 250, 7])
    part = np.empty((3, design.n_features))
    for other in (design.taken(rows), pickle.loads(pickle.dumps(design)).taken(rows)):
        other.gather(None, 0, 3, part)
        assert np.array_equal(part, Z[rows])


@pytest.mark.parametrize("linear", [False, True])
def test_function_and_variables_are_each_other_s_inverse(linear, monkeypatch):
    design, Z = problem(linear=linear)
    terms = design.terms
    scales = np.concatenate([terms.linear_scales, terms.scales])
    w = np.where(scales > 0.0, np.random.default_rng(3).normal(size=design.n_features), 0.0)
    function = terms.function(w)
    X = terms_raw[id(terms)]
    scores = function.scores(X, 2)
    assert np.allclose(scores, Z @ w, rtol=0, atol=1e-12)
    monkeypatch.setattr(function_module, "SCORED_ROWS", 77)
    assert np.array_equal(function.scores(X, 2), scores)
    features, pairs = function.contributions(X)
    assert np.allclose(features.sum(axis=1) + pairs.sum(axis=1), Z @ w, rtol=0, atol=1e-12)
    assert np.allclose(terms.variables_of(function), w, rtol=0, atol=1e-12)


def test_the_compiled_module_refuses_what_it_could_not_read():
    codes = np.array([[0], [3]], dtype=np.uint8)
    column = np.array([[2, 0, 0, 0, 0, 0, 0]])
    with pytest.raises(ValueError, match="codes are beyond"):
        coded.CodedFeatures(codes, column, np.ones(2))
    with pytest.raises(ValueError, match="scales has length"):
        coded.CodedFeatures(codes % 2, column, np.ones(3))
    with pytest.raises(ValueError, match="a code has one byte"):
        coded.CodedFeatures(codes, np.array([[300, 0, 0, 0, 0, 0, 0]]), np.ones(300))
    features = coded.CodedFeatures(codes % 2, column, np.ones(2))
    with pytest.raises(ValueError, match="values has length"):
        features.look_up(np.ones(2), 0, 2, np.zeros(2))
    with pytest.raises(ValueError, match="range"):
        features.look_up(np.ones(3), 0, 3, np.zeros(3))
    with pytest.raises(ValueError, match="numbers that are not within"):
        coded.coded_products(None, np.empty(0), features, np.array([2]))


def test_a_pair_has_the_products_of_both_columns():
    assert Pair(0, 1, *(each for each in problem()[0].terms.bins[:2])).n_variables == 8


@pytest.mark.parametrize("n_levels", [2, 100, 255])
def test_tables_larger_than_a_tile(n_levels):
    """Look-ups and sums take some columns and some rows at a time."""
    random = np.random.default_rng(0)
    X = random.normal(size=(700, 45))
    bins = feature_bins(X, n_levels)
    codes = codes_of(bins, X)
    terms = AdditiveTerms(bins, level_shares(bins, codes), np.ones(45), np.zeros(45), 1.0, linear=False)
    design = AdditiveDesign(as_design_matrix(X), codes, terms)
    table, u = random.normal(size=design.vector_basis.n_numbers), random.normal(size=700)
    u[::5] = 0.0
    entries = terms.columns[:, 6]
    for rows in (None, random.permutation(700)):
        products, own = design.products(rows), codes if rows is None else codes[rows]
        scores, sums = np.empty(650), np.zeros(len(table))
        products.scores(20, 670, table, scores)
        np.testing.assert_allclose(scores, table[own[20:670] + entries].sum(axis=1), rtol=1e-12, atol=1e-12)
        products.accumulate(20, 670, u[20:670], sums)
        expected = np.bincount((own[20:670] + entries).ravel(), np.repeat(u[20:670], 45), len(table))
        np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)
