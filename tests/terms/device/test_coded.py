"""The data term of an additive model on a device against the term of the same design matrix on threads."""

import os

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm.additive import AdditiveTerms, codes_of, feature_bins, level_shares
from ranksvm.additive.columns import Pair
from ranksvm.data import ComparablePairs, PairList, Queries
from ranksvm.device import open_device
from ranksvm.device.host import HostDevice
from ranksvm.losses import LossSpec
from ranksvm.terms.device import coded
from ranksvm.terms.device.coded import CodedTerm
from ranksvm.terms.host import ThreadedTerm

DEVICES = {
    "3 blocks of 16": HostDevice(),
    "many blocks, backwards": HostDevice(n_blocks=50, n_threads=32, backwards=True),
    # a few columns of the table at a time, and few histograms at a time
    "little shared memory": HostDevice(n_blocks=50, large_block_bytes=300),
}
if os.environ.get("RANKSVM_TEST_CUDA"):
    DEVICES["cuda:0"] = open_device("cuda:0")
WIDTHS = {"squared_hinge": None, "hinge": 0.3, "huber": 0.6}


def make_design(storage=np.ascontiguousarray, linear=True, max_bins=9, pairs=True, n=700):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.8)
    X[:, 1] = np.round(2 * X[:, 1])
    X[:, 2] = 4.0  # constant
    bins = feature_bins(X, max_bins)
    shares = level_shares(bins, codes_of(bins, X))
    coarse = [each.coarser(own, 4) for each, own in zip(bins, shares, strict=True)]
    both = [Pair(a, b, coarse[a], coarse[b]) for a, b in ((0, 1), (3, 5))]
    terms = AdditiveTerms(bins, shares, np.full(6, 0.3), np.zeros(6), 1.0, linear, both if pairs else ())
    return terms.design(storage(X))


def pairs_of(design, listed=False, seed=0):
    rng = np.random.default_rng(seed)
    n = len(design.codes)
    qid, y = rng.integers(0, 25, n), rng.integers(0, 4, n)
    if listed:
        pairs = np.argwhere((qid[:, None] == qid) & (y[:, None] > y))[::7]
        return PairList.from_pairs(Queries.from_qid(qid, n), pairs, pair_weight=rng.random(len(pairs)))
    return ComparablePairs.from_labels(Queries.from_qid(qid, n), y.astype(float))


def terms_of(design, pairs, loss, device):
    spec = LossSpec(loss, WIDTHS[loss] if loss == "huber" else None).with_pairs(pairs)
    return ThreadedTerm(design, spec), CodedTerm(device, design, spec)


def check_same(host, term, width, seed=0):
    rng = np.random.default_rng(seed)
    w, v = rng.normal(size=(2, host.n_variables))
    expected, found = host.evaluate(w, width), term.evaluate(w, width)
    np.testing.assert_allclose(term.scores(w), host.scores(w), atol=1e-12)
    assert found.sums.value == pytest.approx(expected.sums.value, rel=1e-12)
    scale = np.abs(expected.gradient).max()
    np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-12 * scale)
    np.testing.assert_allclose(term.score_gradient(found), host.score_gradient(expected), atol=1e-11)
    product = host.curvature_product(expected, v)
    np.testing.assert_allclose(term.curvature_product(found, v), product, atol=1e-11 * np.abs(product).max())
    curvature = host.curvature(expected, 1.0, 0)
    np.testing.assert_allclose(term.curvature(found, 1.0, 0), curvature, atol=1e-11 * np.abs(curvature).max())
    if host.n_rows <= 1000:
        np.testing.assert_allclose(term.curvature_diagonal(found), curvature.diagonal(), rtol=1e-9, atol=1e-12 * scale)
    np.testing.assert_allclose(term.sizes().largest, host.sizes().largest)
    assert term.sizes().entries == host.sizes().entries


@pytest.mark.parametrize("loss", WIDTHS)
@pytest.mark.parametrize("listed", [False, True], ids=["levels", "listed"])
@pytest.mark.parametrize("device", DEVICES)
def test_results_are_those_of_threads(device, listed, loss):
    design = make_design()
    check_same(*terms_of(design, pairs_of(design, listed), loss, DEVICES[device]), WIDTHS[loss])


@pytest.mark.parametrize(
    "options",
    [
        {"storage": lambda X: X.astype(np.float32)},
        {"storage": sp.csr_array},
        {"linear": False},
        {"linear": False, "storage": sp.csr_array},
        {"max_bins": 255, "n": 3000},
        {"max_bins": 2, "pairs": False},
        {"n": 5000},
    ],
    ids=[
        "float32",
        "CSR",
        "without a linear part",
        "CSR without a linear part",
        "many levels",
        "two levels",
        "many rows",
    ],
)
@pytest.mark.parametrize("device", DEVICES)
def test_every_kind_of_design(device, options):
    design = make_design(**options)
    if len(design.codes) >= 5000:  # then the products of the host take a value for each cell of two columns
        assert design.vector_basis.n_numbers > design.terms.level_basis.n_numbers
    check_same(*terms_of(design, pairs_of(design), "squared_hinge", DEVICES[device]), None)


@pytest.mark.parametrize("device", DEVICES)
def test_two_terms_give_the_same_bits(device):
    design = make_design()
    pairs = pairs_of(design)
    first, second = (terms_of(design, pairs, "hinge", DEVICES[device])[1] for _ in range(2))
    w = np.linspace(-1.0, 1.0, first.n_variables)
    found = [term.evaluate(w, 0.3) for term in (first, second)]
    np.testing.assert_array_equal(found[0].gradient, found[1].gradient)


def test_threads_in_any_order_give_the_same_bits():
    design = make_design()
    pairs = pairs_of(design)
    found = []
    for backwards in (False, True):
        term = terms_of(design, pairs, "squared_hinge", HostDevice(backwards=backwards))[1]
        found.append(term.evaluate(np.linspace(-1.0, 1.0, term.n_variables), None).gradient)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("most_rows", [5, 10_000])
def test_the_rows_of_few_pairs_are_taken_alone(most_rows, monkeypatch):
    design = make_design()
    monkeypatch.setattr(coded, "SPARSE_SPAN", most_rows)
    queries = Queries.from_qid(np.arange(700) // 70, 700)
    pairs = PairList.from_pairs(queries, np.array([[10, 3], [11, 7], [699, 650]]))
    check_same(*terms_of(design, pairs, "squared_hinge", HostDevice()), None)


@pytest.mark.parametrize("storage", [np.ascontiguousarray, sp.csr_array], ids=["dense", "CSR"])
def test_terms_of_the_same_pairs_share_the_features(storage, monkeypatch):
    with_pairs, without = (make_design(storage, pairs=pairs) for pairs in (True, False))
    loss, device, known = LossSpec("squared_hinge").with_pairs(pairs_of(without)), HostDevice(), {}
    copied, rows_on = [], coded.rows_on
    monkeypatch.setattr(coded, "rows_on", lambda *arguments: copied.append(1) or rows_on(*arguments))
    terms = [CodedTerm(device, design, loss, 1, known) for design in (without, with_pairs)]
    assert len(copied) == 1
    for design, term in zip((without, with_pairs), terms, strict=True):
        check_same(ThreadedTerm(design, loss), term, None)


def test_a_sample_has_the_scores_of_all_rows():
    design = make_design(n=3000)
    host, term = terms_of(design, pairs_of(design), "squared_hinge", HostDevice())
    w = np.linspace(-1.0, 1.0, host.n_variables)
    expected, found = (each.sample_at(each.evaluate(w, None), 200, 0) for each in (host, term))
    assert isinstance(found[0], ThreadedTerm)
    assert found[0].weight == expected[0].weight
    np.testing.assert_allclose(found[1].scores, expected[1].scores, atol=1e-12)
    smaller = term.sample(200, 0)
    assert isinstance(smaller, CodedTerm)
    check_same(host.sample(200, 0), smaller, None)


def test_no_pairs():
    design = make_design()
    pairs = ComparablePairs.from_labels(Queries.from_qid(np.arange(700), 700), np.zeros(700), may_be_empty=True)
    _, term = terms_of(design, pairs, "squared_hinge", HostDevice())
    found = term.evaluate(np.ones(term.n_variables), None)
    assert found.sums.value == 0.0
    np.testing.assert_array_equal(found.gradient, 0.0)
    np.testing.assert_array_equal(term.curvature_product(found, found.gradient), 0.0)
    np.testing.assert_array_equal(term.curvature(found, 1.0, 0), 0.0)
    np.testing.assert_array_equal(term.curvature_diagonal(found), 0.0)
