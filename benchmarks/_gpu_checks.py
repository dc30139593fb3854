"""Compare fits on a device with fits on the CPU for all losses and options: the first part of `gpu.py`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ranksvm import AdditiveRankSVM, KernelRankSVM, RankSVM, make_ranking
from ranksvm.terms.device import layout

TOL = 1e-8
# Largest relative difference of objectives at tol=1e-8.
CLOSE = 1e-9
LOSSES = ("squared_hinge", "hinge", "huber")
SEED = 0


class Check(NamedTuple):
    """The comparison of a fit on the device with one on the CPU."""

    name: str
    difference: float
    certificate: float
    repeated: bool
    converged: bool
    error: str = ""

    @property
    def passed(self) -> bool:
        """Whether the objectives agree within the certificates, and a second fit gave the same bits."""
        return self.converged and self.repeated and self.difference <= max(CLOSE, self.certificate)


def checks(device: str, smoke: bool, only: str = "") -> Iterator[Check]:
    """Check every loss with every kind of features, pairs and weights; only fits whose names contain ``only``."""
    for fit in fits_to_check(device, smoke):
        if only in fit.args[0]:
            yield fit()


def fits_to_check(device: str, smoke: bool) -> Iterator[partial[Check]]:
    """Generate the checks; run each before the next one is requested."""
    sizes = (4, 8, 4) if smoke else (400, (1, 100), 46)
    data = make_ranking(*sizes, random_state=SEED)
    rng = np.random.default_rng(SEED)
    y, qid, n = data.y, data.qid, data.n_rows
    sparse = data.X * (rng.random(data.X.shape) < 0.3)
    pairs = listed(y, qid, rng)
    weights = {"sample_weight": rng.integers(0, 3, n), "query_weight": 0.5 + qid % 3, "propensity": 1.0 / (1.0 + y)}
    for loss in LOSSES:
        labels: dict[str, Any] = {"y": y, "qid": qid}
        yield partial(checked, f"{loss}, float32", device, data.X, labels, loss=loss)
        yield partial(checked, f"{loss}, float64", device, data.X.astype(np.float64), labels, loss=loss)
        yield partial(checked, f"{loss}, CSR", device, scipy.sparse.csr_array(sparse), labels, loss=loss)
        yield partial(checked, f"{loss}, tron", device, data.X, labels, loss=loss, solver="tron")
        yield partial(checked, f"{loss}, rows weighted", device, data.X, labels | weights, loss=loss)
        yield partial(checked, f"{loss}, pairs listed", device, data.X, {"pairs": pairs, "qid": qid}, loss=loss)
        for weighting in ("per_query", "label_gap", "gain_gap"):
            yield partial(checked, f"{loss}, {weighting}", device, data.X, labels, loss=loss, pair_weighting=weighting)
        yield partial(checked, f"{loss}, adjacent levels", device, data.X, labels, loss=loss, pair_selection="adjacent")
    few = data.qid <= (10 if smoke else 60)
    X, labels_of_few = data.X[few], {"y": y[few], "qid": qid[few]}
    missing = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    features = {
        "float32": X,
        "float64, missing values": missing.astype(np.float64),
        "CSR": scipy.sparse.csr_array(sparse[few]),
    }
    for name, values in features.items():
        for loss in LOSSES:
            options = {"loss": loss, "C": 0.01, "max_bins": 16, "model": AdditiveRankSVM}
            yield partial(checked, f"additive, {loss}, {name}", device, values, labels_of_few, **options)
    options = {"C": 0.01, "max_bins": 16, "model": AdditiveRankSVM}
    yield partial(checked, f"additive, {n:,} rows", device, data.X, {"y": y, "qid": qid}, **options)
    both = {"interactions": [(0, 1), (2, 3)], "monotone": {0: "increasing"}, "C": 0.01, "model": AdditiveRankSVM}
    yield partial(checked, "additive, interactions, monotone", device, X, labels_of_few, **both)
    for kernel in ("rbf", "laplacian", "poly", "cosine", "linear"):
        for approximation in (None, "nystroem") if kernel != "rbf" else (None, "nystroem", "fourier"):
            options = {"kernel": kernel, "approximation": approximation, "gamma": 0.02, "kernel_dtype": "float64"}
            options |= {"n_components": 50, "random_state": 0, "C": 0.01, "model": KernelRankSVM}
            name = f"kernel {kernel}, {approximation or 'exact'}"
            yield partial(checked, name, device, X, labels_of_few, **options)
    sparse_few = scipy.sparse.csr_array(sparse[few])
    options = {"gamma": 0.02, "kernel_dtype": "float64", "C": 0.01, "model": KernelRankSVM}
    yield partial(checked, "kernel rbf, exact, CSR", device, sparse_few, labels_of_few, **options)
    for C in (1.0, 1e3):  # with a factor in float32, and in float64
        options |= {"C": C, "solver": "direct"}
        yield partial(checked, f"kernel rbf, direct steps, C = {C:g}", device, X, labels_of_few, **options)
    many = make_ranking(2, 60 if smoke else 6000, 5, n_levels=None, random_state=SEED)
    lists: dict[str, Any] = {"y": many.y, "qid": many.qid}
    yield partial(checked, f"squared_hinge, {many.n_rows // 2:,} levels a query", device, many.X, lists, C=1e-4)
    wide = make_ranking(*((4, (5, 90), 300) if smoke else (6, (5, 60), 400)), random_state=SEED)
    lists = {"y": wide.y, "qid": wide.qid}
    for loss in LOSSES:
        yield partial(
            checked, f"{loss}, some lists larger than shared memory", device, wide.X, lists, loss=loss, C=0.01
        )
    with streaming(wide.X.nbytes // 4):
        for loss in LOSSES:
            yield partial(checked, f"{loss}, X streams through", device, wide.X, lists, loss=loss, C=0.01)
    yield partial(checked, "squared_hinge, scores with an offset", device, data.X.astype(np.float64) + 1e4, labels)


@contextmanager
def streaming(n_bytes: int) -> Iterator[None]:
    """Make fits keep X on the host, and copy it to the device in blocks of ``n_bytes`` bytes."""
    before = layout.RESIDENT_SHARE, layout.STREAM_BYTES
    layout.RESIDENT_SHARE, layout.STREAM_BYTES = -1e9, n_bytes
    try:
        yield
    finally:
        layout.RESIDENT_SHARE, layout.STREAM_BYTES = before


def listed(y: np.ndarray, qid: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random choice of pairs of neighboring rows with different labels."""
    rows = np.flatnonzero((qid[:-1] == qid[1:]) & (y[:-1] != y[1:]))
    rows = rows[rng.random(len(rows)) < 0.7]
    first = y[rows] > y[rows + 1]
    return np.stack([np.where(first, rows, rows + 1), np.where(first, rows + 1, rows)], axis=1)


def checked(
    name: str, device: str, X: Any, given: dict[str, Any], C: float = 0.1, model: Any = RankSVM, **options: Any
) -> Check:
    """Compare one fit on the CPU with two on the device."""
    options = {"C": C, "tol": TOL, **options}
    y, rest = given.get("y"), {key: value for key, value in given.items() if key != "y"}
    try:
        cpu, first, again = (model(device=where, **options).fit(X, y, **rest) for where in ("cpu", device, device))
    except Exception as error:  # whatever the error is, continue with the other checks
        return Check(
            name, np.inf, np.nan, False, False, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        )
    size = cpu.objective_
    return Check(
        name,
        abs(first.objective_ - size) / size,
        max(first.duality_gap_, cpu.duality_gap_) / size,
        bool(np.array_equal(first.predict(X), again.predict(X))),
        first.converged_,
    )
