"""The compiled modules refuse arrays that do not agree, before a loop reads or writes beyond one of them."""

import numpy as np
import pytest

from ranksvm._compiled import (
    blocks,
    cholesky,
    dual_descent,
    factorized,
    hessian,
    kernel,
    letor,
    linear,
    metrics,
    online,
    pair_list,
    passes,
    sweep,
)

Q = np.array([0, 3, 5])  # two queries, five documents
LEVELS = np.array([0, 1, 2, 0, 1], dtype=np.int32)
N_LEVELS = np.array([3, 2], dtype=np.int32)
ONE, TWO, FIVE, SIX = np.ones(1), np.ones(2), np.ones(5), np.ones(6)
X = np.ones((5, 4))
DATA, INDICES, INDPTR = np.ones(5), np.arange(5, dtype=np.int32) % 4, np.arange(6, dtype=np.int32)
CSR = DATA, INDICES, INDPTR, 4
FIRST = np.array([1, 2, 1], dtype=np.int32)
SECOND = np.array([0, 1, 0], dtype=np.int32)
PAIR_POINTERS = np.array([0, 2, 3])


def ints(*values):
    return np.array(values, dtype=np.int32)


def longs(*values):
    return np.array(values, dtype=np.int64)


def sweep_pairs(weights=(None, None, None)):
    arrays = sweep.PairArrays(Q, LEVELS, N_LEVELS, *weights, False, 31)
    arrays.choose(np.array([3.0, 1.0]), 5.0, np.empty(5, dtype=np.int32), np.empty(2, dtype=np.uint8))
    return arrays


def state(n=5):
    return sweep.StateArrays(None, None, None, np.empty(n), np.empty(n), False)


def hessian_over(totals, operator=None):
    operator = sweep.laplacian(sweep_pairs(), state(), 1.0) if operator is None else operator
    shares = passes.QueryShares(longs(0, 2).reshape(1, 2), longs(1))
    hessian.hessian_over(linear.dense_products(X, None), operator, shares, 10, False, False, totals, 1)


def diagonal_over(totals):
    operator = sweep.laplacian(sweep_pairs(), state(), 1.0)
    shares = passes.QueryShares(longs(0, 2).reshape(1, 2), longs(1))
    hessian.diagonal_over(linear.dense_products(X, None), operator, shares, 10, totals, 1)


def listed(preferred=FIRST, other=SECOND, pointers=Q, pair_pointers=PAIR_POINTERS):
    return pair_list.ListArrays(pointers, pair_pointers, preferred, other, np.ones(3))


def block_arrays(preferred=(2, 1, 4), first=(0, 1, 0), offsets=(0, 4, 5)):
    rows, columns, other = longs(0, 2, 3), longs(0, 2, 3), longs(1, 0, 3)
    return blocks.BlockArrays(Q, rows, columns, longs(*offsets), longs(*preferred), other, longs(*first))


def factors(V=None, levels=LEVELS, rows=None):
    return factorized.QueryFactors(
        Q, rows, levels, N_LEVELS, np.zeros((5, 4)) if V is None else V, np.zeros(2), np.zeros(2)
    )


def dual(preferred=FIRST, rows=None, gram_pointers=(0, 9, 13), n_grams=13):
    return dual_descent.PairArrays(
        Q, rows, PAIR_POINTERS, preferred, SECOND, np.ones(3), np.ones(3), longs(*gram_pointers), np.zeros(n_grams)
    )


def model(n=4, **arrays):
    return online.Model(*{"w": np.zeros(n), "lag": np.zeros(n), "counts": np.zeros(4), **arrays}.values())


def learn(csr=False, method="solar_first", S=None, preferred=FIRST, other=SECOND, weight=None, n=4):
    call = online.learn_sparse if csr else online.learn_dense
    call(model(n), method, 1.0, S, *(CSR if csr else (X,)), preferred, other, weight)


def committee(experts=(2, 4), survivals=2, survival=1):
    arrays = np.zeros(experts), np.zeros(survivals), np.zeros(survival)
    online.committee_dense(model(), *arrays, X, FIRST, SECOND, None)


def form(Q=None, U=None, row=(0, 1, 3), column=(0, 2, 5), last=2, out=None):
    arrays = (np.ones(shape) if a is None else a for a, shape in ((Q, (5, 5)), (U, 8), (out, (3, 3))))
    Q, U, out = arrays
    kernel.form_blocks(Q, U, longs(*row), longs(*column), 0, last, 1.0, out)


def factor(first=2, last=4, start=1, stop=2, left=((1, 1),), inverse=((1, 1),)):
    left, inverse = (None if shape is None else kernel.packed_rows(np.ones(*shape)) for shape in (left, inverse))
    kernel.factor_rows(np.ones((4, 4)), first, last, start, stop, left, inverse)


def text_range(start, stop):
    text = np.frombuffer(b"1 qid:1 1:2\n", dtype=np.uint8)
    letor.parse_dense(
        text, start, stop, (1, False, False, False, True), np.empty((1, 1)), np.empty(1), np.empty(1, dtype=np.int64),
        None, None,
    )  # fmt: skip


REFUSED = {
    "pointers that descend": lambda: sweep.PairArrays(longs(0, 6, 5), LEVELS, N_LEVELS, None, None, None, False, 31),
    "pointers beyond the rows": lambda: sweep.PairArrays(longs(0, 3, 9), LEVELS, N_LEVELS, None, None, None, False, 31),
    "pointers below 0": lambda: sweep.PairArrays(longs(-1, 3, 5), LEVELS, N_LEVELS, None, None, None, False, 31),
    "no pointers": lambda: sweep.PairArrays(longs(), LEVELS, N_LEVELS, None, None, None, False, 31),
    "levels beyond": lambda: sweep.PairArrays(Q, LEVELS + 1, N_LEVELS, None, None, None, False, 31),
    "negative levels": lambda: sweep.PairArrays(Q, LEVELS - 1, N_LEVELS, None, None, None, False, 31),
    "short n_levels": lambda: sweep.PairArrays(Q, LEVELS, N_LEVELS[:1], None, None, None, False, 31),
    "short weights": lambda: sweep_pairs((FIVE, np.ones(4), None)),
    "one of two weights": lambda: sweep_pairs((FIVE, None, None)),
    "gains without weights": lambda: sweep_pairs((None, None, FIVE)),
    "short gains": lambda: sweep_pairs((FIVE, FIVE, ONE)),
    "choice for others": lambda: sweep_pairs().choose(ONE, 1.0, LEVELS.copy(), np.empty(2, dtype=np.uint8)),
    "no choice": lambda: sweep.squared_hinge(
        sweep.PairArrays(Q, LEVELS, N_LEVELS, None, None, None, False, 31), state(), 1.0
    ),
    "state of others": lambda: sweep.squared_hinge(sweep_pairs(), state(4), 1.0),
    "short scores": lambda: sweep.squared_hinge(sweep_pairs(), state(), 1.0)(0, 2, ONE, FIVE.copy()),
    "short gradient": lambda: sweep.huber(sweep_pairs(), state(), 1.0, True)(0, 2, FIVE, TWO.copy()),
    "queries beyond": lambda: sweep.huber(sweep_pairs(), state(), 1.0, True)(0, 3, FIVE, FIVE.copy()),
    "queries below 0": lambda: sweep.laplacian(sweep_pairs(), state(), 1.0)(-1, 1, FIVE, FIVE.copy()),
    "short vector": lambda: sweep.laplacian(sweep_pairs(), state(), 1.0)(0, 2, TWO, FIVE.copy()),
    "narrow rows": lambda: sweep.laplacian(sweep_pairs(), state(), 1.0).rows(0, 2, X.copy(), np.empty((10, 3))),
    "room for rows": lambda: sweep.laplacian(sweep_pairs(), state(), 1.0).rows(0, 2, X.copy(), np.empty((5, 4))),
    "rows of no Hessian": lambda: sweep.huber(sweep_pairs(), state(), 1.0, True).rows(
        0, 2, X.copy(), np.empty((10, 4))
    ),
    "products of other documents": lambda: sweep.laplacian(sweep_pairs(), state(), 1.0).product(
        0, 2, X[:4].copy(), X[:4].copy()
    ),
    "products of other documents of a list": lambda: pair_list.laplacian(listed(), np.ones(3), np.ones(5), 1.0).product(
        0, 2, X[:4].copy(), X[:4].copy()
    ),
    "products of other queries": lambda: sweep.laplacian(sweep_pairs(), state(), 1.0).product(
        0, 3, X.copy(), X.copy()
    ),
    "room for products": lambda: sweep.laplacian(sweep_pairs(), state(), 1.0).product(0, 2, X.copy(), X[:, 1:].copy()),
    "products between rows": lambda: sweep.laplacian(sweep_pairs(), state(), 1.0).product(
        0, 2, X.copy(), np.asfortranarray(X)
    ),
    "products of no Hessian": lambda: sweep.huber(sweep_pairs(), state(), 1.0, True).product(0, 2, X.copy(), X.copy()),
    "products of other rows": lambda: hessian.add_product(X, X[:4], np.zeros((4, 4))),
    "products of other widths": lambda: hessian.add_product(X, np.zeros((5, 3)), np.zeros((4, 4))),
    "small total": lambda: hessian.add_product(X, X, np.zeros((4, 3))),
    "totals of fewer shares": lambda: hessian_over(np.zeros((0, 4, 4))),
    "totals that are not square": lambda: hessian_over(np.zeros((1, 4, 3))),
    "totals of other features": lambda: hessian_over(np.zeros((1, 3, 3))),
    "diagonals of fewer shares": lambda: diagonal_over(np.zeros((0, 4))),
    "diagonals of other features": lambda: diagonal_over(np.zeros((1, 3))),
    "a Hessian of a gradient": lambda: hessian_over(
        np.zeros((1, 4, 4)), sweep.squared_hinge(sweep_pairs(), state(), 1.0)
    ),
    "short counts": lambda: sweep.count_pairs(sweep_pairs(), 0, 2, ONE.copy(), TWO.copy()),
    "short levels": lambda: sweep.compress_levels(Q, 0, 2, FIVE, ints(0), N_LEVELS.copy()),
    "pair of another query": lambda: listed(preferred=ints(1, 3, 1)),
    "negative document": lambda: listed(other=ints(0, 1, -1)),
    "pair pointers beyond": lambda: listed(pair_pointers=longs(0, 2, 4)),
    "list, short scores": lambda: pair_list.squared_hinge(listed(), 1.0, np.empty(3), FIVE.copy())(0, 2, ONE, FIVE),
    "list, short curvature": lambda: pair_list.laplacian(listed(), ONE.copy(), FIVE.copy(), 1.0),
    "block of another query": lambda: block_arrays(preferred=(2, 3, 4)),
    "block row begins beyond": lambda: block_arrays(first=(0, 3, 0)),
    "block offsets": lambda: block_arrays(offsets=(0, 3, 5)),
    "matrix, not square": lambda: cholesky.factorize(np.ones((3, 4))),
    "factor, not square": lambda: cholesky.solve(np.ones((3, 4)), np.ones(3)),
    "factor, short vector": lambda: cholesky.solve(np.ones((3, 3)), TWO),
    "block, short target": lambda: blocks.shifted_hinge(
        block_arrays(), 0, 2, FIVE, ONE, 1.0, 1.0, FIVE.copy(), FIVE.copy()
    ),
    "block, wrong shape": lambda: blocks.shifted_pulls(block_arrays(), 0, FIVE, FIVE, 1.0, 1.0, np.empty((1, 2))),
    "block, no such query": lambda: blocks.shifted_bends(block_arrays(), 2, FIVE, FIVE, 1.0, 1.0, np.empty((1, 2))),
    "factors, short": lambda: factors(V=np.zeros((4, 4))),
    "factors, levels": lambda: factors(levels=LEVELS + 1),
    "factors, order": lambda: factorized.visit_dense(X, factors(), longs(0, 2), 1.0, 0.0, np.zeros(4)),
    "factors, rows": lambda: factorized.visit_dense(X[:4], factors(), longs(0, 1), 1.0, 0.0, np.zeros(4)),
    "factors, map of rows": lambda: factorized.visit_sparse(
        *CSR, factors(rows=longs(0, 1, 2, 3, 5)), longs(0, 1), 1.0, 0.0, np.zeros(4)
    ),
    "factors, beta": lambda: factorized.visit_sparse(*CSR, factors(), longs(0, 1), 1.0, 0.0, np.zeros(3)),
    "factors, gradient": lambda: factorized.gradient(factors(), 0, 2, FIVE.copy(), np.zeros((4, 4))),
    "factors, move": lambda: factorized.move(np.zeros((5, 4)), np.zeros((4, 4)), 1.0, 0.5),
    "dual, pair": lambda: dual(preferred=ints(1, 2, 2)),
    "dual, no room": lambda: dual_descent.dense_grams(X, dual(n_grams=12), longs(0, 1), np.zeros(4)),
    "dual, room before": lambda: dual_descent.dense_grams(X, dual(gram_pointers=(-1, 9, 13)), longs(0), np.zeros(4)),
    "dual, rows": lambda: dual_descent.sparse_grams(*CSR, dual(rows=longs(0, 1, 2, 3, 7)), longs(0), np.zeros(4)),
    "dual, alpha": lambda: dual_descent.dense_ascent(X, dual(), longs(0), np.zeros(2), np.zeros(4)),
    "dual, signs": lambda: dual_descent.dense_ascent(
        X, dual(), longs(0), np.zeros(3), np.zeros(4), np.zeros(3, dtype=np.int8), np.zeros(4)
    ),
    "dual, w": lambda: dual_descent.sparse_ascent(
        *CSR, dual(), longs(0), np.zeros(3), np.zeros(4), np.zeros(4, dtype=np.int8), np.zeros(3)
    ),
    "dual, no w": lambda: dual_descent.sparse_ascent(
        *CSR, dual(), longs(0), np.zeros(3), np.zeros(4), np.zeros(4, dtype=np.int8), None
    ),
    "dual, z": lambda: dual_descent.sparse_ascent(*CSR, dual(), longs(0), np.zeros(3), np.zeros(3)),
    "panels": lambda: kernel.panels_product(np.ones(10), 4, 2, 0, 2, np.ones(4), np.zeros(4)),
    "no panel": lambda: kernel.panels_product(np.ones(12), 4, 2, 0, 3, np.ones(4), np.zeros(4)),
    "kernel block": lambda: kernel.block_product(X, 2, 0, SIX, SIX.copy()),
    "kernel square": lambda: kernel.square_product(X, 0, SIX, SIX.copy()),
    "Laplacians": lambda: cholesky.factorize_laplacians(np.ones(12), longs(2, 3)),
    "size of a Laplacian": lambda: cholesky.factorize_laplacians(np.ones(12), longs(-2, 2)),
    "panels to gather from": lambda: kernel.gather_rows(np.ones(11), 4, 2, longs(0, 2), 0, 2, np.ones((2, 2))),
    "positions beyond the matrix": lambda: kernel.gather_rows(np.ones(12), 4, 2, longs(1, 4), 0, 2, np.ones((2, 2))),
    "positions twice": lambda: kernel.gather_rows(np.ones(12), 4, 2, longs(1, 1), 0, 2, np.ones((2, 2))),
    "rows to gather": lambda: kernel.gather_rows(np.ones(12), 4, 2, longs(0, 2), 0, 3, np.ones((2, 2))),
    "narrow rows to gather into": lambda: kernel.gather_rows(np.ones(12), 4, 2, longs(0, 2), 0, 2, np.ones((2, 1))),
    "rows that are not contiguous": lambda: kernel.packed_rows(np.ones((3, 2)).T),
    "rows of a factor": lambda: factor(last=5),
    "columns of a factor": lambda: factor(start=2, stop=5),
    "rows of a factor above its block": lambda: factor(first=1),
    "rows of a factor's block": lambda: factor(inverse=None),
    "rows left of a factor's block": lambda: factor(left=((1, 2),)),
    "columns of a factor's block": lambda: kernel.factor_rows(
        np.ones((300, 300)), 257, 300, 0, 257, np.empty(0), np.ones(300 * 300)
    ),
    "inverse of a factor's block": lambda: factor(inverse=((1, 2),)),
    "a form's values": lambda: form(U=np.ones(7)),
    "a form's Q": lambda: form(Q=np.ones((4, 4))),
    "a form's narrow Q": lambda: form(Q=np.ones((5, 4))),
    "a form's result": lambda: form(out=np.ones((2, 3))),
    "a form's blocks": lambda: form(last=3),
    "a form's tall block": lambda: form(row=(0, 3, 3), U=np.ones(20)),
    "a form's pointers": lambda: form(column=(0, 5)),
    "distances": lambda: kernel.dense_distances(X, X, np.empty((5, 4))),
    "sparse distances": lambda: kernel.sparse_distances(*CSR[:3], *CSR[:3], 4, np.empty((5, 6))),
    "w": lambda: linear.dense_products(X, None).scores(0, 5, np.ones(3), FIVE.copy()),
    "positions": lambda: linear.dense_products(X, None).scores(0, 6, np.ones(4), SIX.copy()),
    "mapped positions": lambda: linear.dense_gather(X, longs(0, 1), 0, 3, np.empty((3, 4))),
    "rows beyond": lambda: linear.dense_products(X, longs(0, 5)),
    "rows beyond two": lambda: linear.two_block_products(X, X, longs(0, 10)),
    "two widths": lambda: linear.two_block_products(X, np.ones((5, 3)), None),
    "mapped positions of two": lambda: linear.two_block_gather(X, X, longs(0, 1), 0, 3, np.empty((3, 4))),
    "sparse rows beyond": lambda: linear.sparse_products(*CSR, longs(0, 5)),
    "sparse squares": lambda: linear.sparse_accumulate_squares(*CSR, None, 0, 6, SIX, np.zeros(4)),
    "state of another list": lambda: pair_list.squared_hinge(listed(), 1.0, np.empty(3), ONE.copy()),
    "u": lambda: linear.dense_products(X, None).accumulate(0, 5, TWO, np.zeros(4)),
    "sparse w": lambda: linear.sparse_products(*CSR, None).scores(0, 5, np.ones(3), FIVE.copy()),
    "sparse positions": lambda: linear.sparse_products(*CSR, None).accumulate(0, 6, SIX, np.zeros(4)),
    "sparse out": lambda: linear.sparse_gather(*CSR, None, 0, 5, np.empty((5, 3))),
    "short values": lambda: linear.sparse_products(ONE, *CSR[1:], None),
    "columns beyond": lambda: linear.check_csr(INDICES, INDPTR, 3),
    "row pointers": lambda: linear.check_csr(INDICES, ints(0, 4, 2, 3, 4, 5), 4),
    "products of sparse rows": lambda: linear.sparse_gram(*CSR, None, np.empty((6, 6))),
    "products of sparse rows beyond": lambda: linear.sparse_gram(*CSR, longs(0, 5), np.empty((2, 2))),
    "room for products of sparse rows": lambda: linear.sparse_gram(*CSR, None, np.empty((5, 4))),
    "centered rows": lambda: linear.center_queries(Q, 0, 2, np.ones((4, 2))),
    "keys": lambda: metrics.descending_order(FIVE, longs(0, 6)),
    "NaN keys": lambda: metrics.descending_order(np.array([1.0, np.nan]), longs(0, 2)),
    "ties": lambda: metrics.pair_counts(FIVE, np.zeros(4, dtype=np.uint8), Q),
    "censored": lambda: metrics.concordance_counts(FIVE, *np.zeros((2, 4), dtype=np.uint8), Q),
    "lag": lambda: model(lag=np.zeros(3)),
    "counts": lambda: model(counts=np.zeros(3)),
    "features": lambda: learn(n=3),
    "sparse features": lambda: learn(csr=True, n=3),
    "documents": lambda: learn(preferred=ints(1, 5, 1)),
    "negative documents": lambda: learn(csr=True, other=ints(-1, 1, 1)),
    "weights of pairs": lambda: learn(weight=TWO),
    "covariance": lambda: learn(method="solar_second", S=np.ones(15)),
    "diagonal": lambda: learn(csr=True, method="solar_diagonal", S=np.ones(3)),
    "no covariance": lambda: learn(method="solar_second"),
    "method": lambda: learn(method="solar_third"),
    "experts": lambda: committee(experts=(2, 3)),
    "survivals": lambda: committee(survivals=1),
    "survival": lambda: committee(survival=0),
    "no experts": lambda: committee(experts=(0, 4), survivals=0),
    "level beyond": lambda: online.prank_dense(model(), TWO.copy(), X, ints(0), ints(3)),
    "document beyond": lambda: online.prank_sparse(model(), TWO.copy(), *CSR, ints(5), ints(0)),
    "room for pairs": lambda: online.fill_pairs(np.array([1.0, 0.0]), False, 0, 0, ints(0, 0), ints(0, 0)),
    "text": lambda: text_range(0, 13),
    "text before": lambda: text_range(-1, 12),
    "span": lambda: letor.widen(
        np.zeros(3, dtype=np.uint8), longs(1), ints(3), np.empty((1, 4), dtype=np.uint32)
    ),
    "wide span": lambda: letor.widen(
        np.zeros(9, dtype=np.uint8), longs(1), ints(5), np.empty((1, 4), dtype=np.uint32)
    ),
    "joined span": lambda: letor.joined_spans(np.zeros(3, dtype=np.uint8), longs(1), ints(3)),
    "labels of lines": lambda: letor.format_dense(X, 1, TWO, None, None, None),
}  # fmt: skip


SAID = "needed|not within|must|beyond|agree|no room|needs|has NaN|no method|no way|together|is empty|wider"


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_arrays_that_do_not_agree_are_refused(call):
    with pytest.raises(ValueError, match=SAID):
        call()


def test_a_refused_model_does_not_decay():
    w, counts = np.ones(4), np.array([2.0, 1.0, 0.5, 1.0])
    with pytest.raises(ValueError, match=SAID):
        online.learn_dense(
            online.Model(w, None, counts, 0.5), "perceptron", 0.0, None, X, FIRST, SECOND, TWO
        )  # fmt: skip
    assert w.tolist() == [1, 1, 1, 1]
    assert counts.tolist() == [2, 1, 0.5, 1]


def test_the_arrays_above_are_accepted_where_they_agree():
    out = FIVE.copy()
    assert sweep.squared_hinge(sweep_pairs((FIVE, FIVE, FIVE)), state(), 1.0)(0, 2, FIVE, out)[0] == 0.0
    assert pair_list.squared_hinge(listed(), 1.0, np.empty(3), FIVE.copy())(0, 2, FIVE, out)[0] == 3.0
    assert blocks.shifted_hinge(block_arrays(), 0, 2, FIVE, FIVE, 0.0, 1.0, FIVE.copy(), out) > 0.0
    dual_descent.dense_grams(X, dual(), longs(0, 1), np.zeros(4))
    factorized.visit_dense(X, factors(), longs(0, 1), 1.0, 0.0, np.zeros(4))
    kernel.panels_product(np.ones(12), 4, 2, 0, 2, np.ones(4), np.zeros(4))
    learn()
    learn(csr=True)
    committee()
    text_range(0, 12)


def test_pairs_of_documents_that_the_degrees_leave_out_write_nothing():
    degrees = np.array([np.nan, 0.0, 1.0, 0.0, 0.0])
    U = np.full((3, 4), 7.0)
    pair_list.laplacian(listed(), np.ones(3), degrees, 2.0).product(0, 2, np.ones((1, 4)), U[1:2])
    np.testing.assert_array_equal(U, np.repeat([[7.0], [2.0], [7.0]], 4, axis=1))
