"""The data of `additive.py`: folds of real data, generated data with known interactions, and folders of LETOR files."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from _common import data_folder, read
from papers.data_sets import ENDINGS, Parts
from ranksvm import RankingData, make_ranking, read_letor

SEED = 0
REAL = ("MQ2008", "MQ2007-partial", "OHSUMED")
# This data set has only one training and one test part.
EXAMPLE = "LightGBM-rank"
N_CURVED, N_PLANTED, NOISE = 20, 10, 0.7


def quality_sets(smoke: bool) -> dict[str, range]:
    """Data sets by name, each with the numbers of its folds."""
    if smoke or data_folder() is None:
        return {"made": range(1, 2)}
    return {**dict.fromkeys(REAL, range(1, 6)), EXAMPLE: range(1, 2)}


def parts_of(name: str, fold: int) -> Parts:
    """The parts of a fold; for LightGBM's example, the last fifth of the training queries is the validation part."""
    if name == "made":
        data = make_ranking(90, (8, 12), 8, n_levels=3, random_state=fold)
        return Parts(*(data.select(data.qid % 3 == number) for number in range(3)))
    train = read(name, fold, sparse=False)
    width = train.n_features
    if name == EXAMPLE:
        late = train.queries.numbers() >= round(0.8 * train.queries.n_queries)
        return Parts(train.select(~late), train.select(late), read(name, fold, "test", sparse=False, n_features=width))
    return Parts(train, *(read(name, fold, part, sparse=False, n_features=width) for part in ("vali", "test")))


# -- planted interactions ----------------------------------------------------------------------------------------------


class Planted(NamedTuple):
    """Generated data whose labels follow a known function of uniform features.

    Parameters
    ----------
    parts : Parts
        Training, validation and test queries.
    truth : tuple of ndarray
        The values of the function, without noise, for the rows of each part.
    pairs : list of tuple of int
        The pairs of features whose product is in the function.
    """

    parts: Parts
    truth: tuple[np.ndarray, ...]
    pairs: list[tuple[int, int]]


def planted(n_queries: int, n_docs: int, n_features: int, n_planted: int = N_PLANTED) -> Planted:
    """Generate uniform features; labels follow curves of the first ones, products of centered ones, and noise.

    Labels are 0 to 3; they divide the noisy function at the same quantiles for all data sizes. A tenth of the queries
    (but at least the smaller of 100 and a quarter) are for validation, and as many for testing.
    """
    rng = np.random.default_rng(SEED)
    n_curved, n_rows = min(N_CURVED, n_features), n_queries * n_docs
    chosen = rng.permutation(n_features * (n_features - 1) // 2)[:n_planted]
    upper = np.stack(np.triu_indices(n_features, 1), axis=1)
    pairs = sorted((int(a), int(b)) for a, b in upper[chosen])
    amplitude, wave, phase = (
        rng.uniform(low, high, n_curved) for low, high in ((0.5, 1.0), (0.5, 1.5), (0.0, 2 * np.pi))
    )
    X, value = np.empty((n_rows, n_features), dtype=np.float32), np.empty(n_rows)
    block = 1 << 16
    for start in range(0, n_rows, block):
        part = rng.random((min(block, n_rows - start), n_features), dtype=np.float32)
        X[start : start + block] = part
        centered = part.astype(np.float64) - 0.5
        curved = amplitude * np.sin(2 * np.pi * wave * part[:, :n_curved] + phase)
        products = sum(12.0 * centered[:, a] * centered[:, b] for a, b in pairs)
        value[start : start + block] = curved.sum(axis=1) + 0.7 * products
    noisy = value + NOISE * value.std() * rng.standard_normal(n_rows)
    y = np.searchsorted(np.quantile(noisy, (0.6, 0.85, 0.95)), noisy).astype(np.float64)
    qid = np.repeat(np.arange(1, n_queries + 1), n_docs)
    held_out = max(min(100, n_queries // 4), n_queries // 10)
    rows = np.split(np.arange(n_rows), [(n_queries - 2 * held_out) * n_docs, (n_queries - held_out) * n_docs])
    data = RankingData(X, y, qid)
    return Planted(Parts(*(data.select(of) for of in rows)), tuple(value[of] for of in rows), pairs)


# -- folders of LETOR files --------------------------------------------------------------------------------------------


def letor_folder(folder: Path, dtype: type = np.float32) -> Parts:
    """Read train, vali (or valid) and test from a folder, as text or compressed; for Yahoo, the files of set 1."""
    paths = [_file(folder, *names) for names in (("train",), ("vali", "valid"), ("test",))]
    if None in paths:
        raise SystemExit(f"{folder} must hold train, vali and test, each as {', '.join(ENDINGS)}.")
    train = read_letor(paths[0], docids=False, sparse=False, dtype=dtype)
    others = (
        read_letor(each, docids=False, sparse=False, dtype=dtype, n_features=train.n_features) for each in paths[1:]
    )
    return Parts(train, *others)


def _file(folder: Path, *names: str) -> Path | None:
    """The first file with one of the names, also with "set1." before the name."""
    found = [folder / f"{set_}{name}{ending}" for name in names for set_ in ("", "set1.") for ending in ENDINGS]
    return next((path for path in found if path.is_file()), None)
