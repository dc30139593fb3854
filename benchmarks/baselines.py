"""Quality of RankSVM and of classical learning-to-rank methods: mean test metrics of five folds.

python benchmarks/baselines.py -o benchmarks/results/baselines.md
"""

import importlib.util
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR

from _baselines import Scorer, adarank, network, pairwise_sgd, rankboost, ranking_vectors
from _common import arguments, data_folder, letor, page, publish, seconds, table
from _low_rank_data import FOLDS, REAL, TINY, parts_of
from papers.data_sets import Parts
from papers.xu_2019.published import QUALITY
from ranksvm import KernelRankSVM, RankingData, RankSVM

MEASURES = ("map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10")
CHOSEN_BY = "map"
SEED = 0
# Values of C and gamma for kernel models.
CS, GAMMAS = (0.01, 0.1, 1.0, 10.0), (2.0**-6, 2.0**-3, 2.0**-1)
# The rows of published tables with methods of this page.
PUBLISHED = ("RSVM (SVM-light)", "LambdaMART", "XGBoost")

# A candidate: its settings as text, and a function that yields scoring functions, for example one after each round.
Candidate = tuple[str, Callable[[RankingData], Iterator[Scorer]]]


def once(fit: Callable[[RankingData], Scorer]) -> Callable[[RankingData], Iterator[Scorer]]:
    """Turn a fit of one model into an iterator with one scoring function."""
    return lambda data: iter([fit(data)])


def candidates(smoke: bool) -> dict[str, list[Candidate]]:
    """The candidates of each method, by name."""
    epochs, rounds, steps = (2, 3, 100) if smoke else (40, 300, 20_000)
    n_trees = 10 if smoke else 1000
    rates = (0.01,) if smoke else (0.001, 0.01)

    def networks(loss: str, n_hidden: int) -> list[Candidate]:
        return [
            (f"rate {rate:g}", lambda data, rate=rate: network(data, loss, n_hidden, rate, epochs, SEED))
            for rate in rates
        ]

    methods: dict[str, list[Candidate]] = {
        "RankSVM, squared hinge": [(f"C = 2^{p}", once(_rank_svm(2.0**p))) for p in range(-15, 3, 9 if smoke else 1)],
        "pairwise SGD (as sofia-ml)": [
            (f"lambda {lam:g}", lambda data, lam=lam: pairwise_sgd(data, lam, steps, 10, SEED))
            for lam in ((0.1,) if smoke else (0.1, 0.01, 0.001, 1e-4))
        ],
        "RankNet, linear": networks("ranknet", 0),
        "RankNet, 10 hidden units": networks("ranknet", 10),
        "ListNet, linear": networks("listnet", 0),
        "ListNet, 10 hidden units": networks("listnet", 10),
        "AdaRank, MAP": [("", lambda data: adarank(data, "map", rounds))],
        "AdaRank, NDCG@5": [("", lambda data: adarank(data, "ndcg@5", rounds))],
        "RankBoost": [("", lambda data: rankboost(data, 20, rounds))],
        f"random forest, {n_trees:,} trees": [
            (f"leaves of {leaf}", once(_forest(n_trees, leaf))) for leaf in ((5,) if smoke else (50,))
        ],
    }
    if importlib.util.find_spec("lightgbm"):
        for objective in ("lambdarank", "regression"):
            methods[f"LightGBM {objective}, up to {n_trees:,} trees"] = [
                (f"{leaves} leaves", lambda data, o=objective, k=leaves: _lightgbm(data, o, k, n_trees))
                for leaves in (4,)
            ]
    return methods


def _rank_svm(C: float) -> Callable[[RankingData], Scorer]:
    return lambda data: RankSVM(C=C).fit(data.X, data.y, qid=data.qid).predict


def _forest(trees: int, leaf: int) -> Callable[[RankingData], Scorer]:
    forest = RandomForestRegressor(trees, min_samples_leaf=leaf, max_features=1 / 3, n_jobs=-1, random_state=SEED)
    return lambda data: forest.fit(data.X, data.y).predict


def _lightgbm(data: RankingData, objective: str, leaves: int, trees: int) -> Iterator[Scorer]:
    import lightgbm

    options = {"objective": objective, "num_leaves": leaves, "learning_rate": 0.02, "verbose": -1, "seed": SEED}
    options |= {"num_threads": 1}  # one thread, because on a shared machine many threads wait for each other
    model = lightgbm.train(options, lightgbm.Dataset(data.X, data.y, group=data.queries.sizes), trees)
    for number in range(max(1, trees // 20), trees + 1, max(1, trees // 20)):
        yield lambda X, number=number: model.predict(X, num_iteration=number)


def tuned(parts: Parts, settings: list[Candidate]) -> tuple[np.ndarray, str]:
    """Test metrics of the model that is best on the validation part, and its settings."""
    best, found, named = -1.0, None, ""
    for label, models in settings:
        for number, scorer in enumerate(models(parts.train), start=1):
            value = letor(parts.vali, scorer(parts.vali.X), [CHOSEN_BY])[CHOSEN_BY]
            if value > best:
                best, found, named = value, scorer, f"{label} {number}".strip()
    means = letor(parts.test, found(parts.test.X), MEASURES).means
    return np.array([means[name] for name in MEASURES]), named


def five_folds(dataset: str, smoke: bool, cache: Path | None) -> list[str]:
    """The table of a data set."""
    folds = list(FOLDS)[: 1 if smoke else 5]
    parts, rows = [parts_of(dataset, fold) for fold in folds], []
    known = {} if cache is None or not cache.exists() else dict(map(json.loads, cache.read_text().splitlines()))
    for method, settings in candidates(smoke).items():
        if f"{dataset}: {method}" in known:
            rows.append(known[f"{dataset}: {method}"])
            continue
        figures = []
        taken = seconds(lambda s=settings, f=figures: f.extend(tuned(each, s)[0] for each in parts))
        mean, error = np.mean(figures, axis=0), np.std(figures, axis=0)[0] / np.sqrt(len(folds))
        cells = [f"{value:.4f}" for value in mean]
        rows.append((method, f"{cells[0]} ({error:.4f})", *cells[1:], f"{taken:.1f}"))
        print(dataset, *rows[-1], file=sys.stderr, flush=True)
        if cache is not None:
            with cache.open("a") as file:
                print(json.dumps([f"{dataset}: {method}", rows[-1]]), file=file)
    for name in PUBLISHED if dataset in QUALITY else ():
        rows.append((f"published: {name}", *(f"{value:.4f}" for value in QUALITY[dataset][name]), "", ""))
    header = ["method", "MAP (standard error of folds)", "NDCG@1", "NDCG@3", "NDCG@5", "NDCG@10", "all fits, s"]
    return [f"### {dataset}", table(header, rows)]


# -- kernels -----------------------------------------------------------------------------------------------------------


def few_queries(data: RankingData, n_queries: int) -> RankingData:
    """The first queries with pairs."""
    chosen = [rows for _, rows in data.queries if len(np.unique(data.y[rows])) > 1][:n_queries]
    return data.select(np.concatenate(chosen))


def kernels(dataset: str, smoke: bool) -> list[str]:
    """Compare RankSVM with the RBF kernel with the linear program of ranking vectors and with pointwise regression."""
    parts, rows = parts_of(dataset, 1), []
    sizes = (5,) if smoke else (10, 20, 30, None)
    for n_queries in sizes:
        train = parts.train if n_queries is None else few_queries(parts.train, n_queries)
        for method in ("RankSVM, RBF", "RV-SVM, linear programme", "SVR, RBF"):
            if n_queries is None and method.startswith("RV-SVM"):
                continue  # its constraints are a dense matrix with a row for each pair and a column for each document
            found, best, took = None, -1.0, []
            for C, gamma in ((1.0, 0.5),) if smoke else product(CS[: 3 if n_queries is None else 4], GAMMAS):
                made: list[Scorer] = []
                took.append(seconds(lambda m=made, c=C, g=gamma: m.append(_kernel_model(method, train, c, g))))  # noqa: B023
                value = letor(parts.vali, made[0](parts.vali.X), [CHOSEN_BY])[CHOSEN_BY]
                if value > best:
                    best, found = value, made[0]
            means = letor(parts.test, found(parts.test.X), MEASURES).means
            cells = [f"{means[name]:.4f}" for name in MEASURES]
            n_vectors = getattr(found, "n_vectors", "")
            rows.append((n_queries or "all", f"{train.n_rows:,}", method, f"{np.median(took):.2f}", n_vectors, *cells))
            print(*rows[-1], file=sys.stderr, flush=True)
    header = ["queries", "rows", "method", "fit, s (median)", "vectors kept"]
    return [
        "## Kernels on a few queries",
        f"{dataset} fold 1, the first queries with pairs; C of {', '.join(f'{C:g}' for C in CS)} (on all queries up to "
        f"1) and gamma of {', '.join(f'{gamma:g}' for gamma in GAMMAS)} by MAP on the validation part. RV-SVM "
        "minimizes the sum of the coefficients of all documents instead of the norm, with one constraint a pair: "
        "`scipy.optimize.linprog` (HiGHS).",
        table([*header, "MAP", "NDCG@1", "NDCG@3", "NDCG@5", "NDCG@10"], rows),
    ]


def _kernel_model(method: str, data: RankingData, C: float, gamma: float) -> Scorer:
    if method.startswith("RV-SVM"):
        return ranking_vectors(data, lambda A, B: rbf_kernel(A, B, gamma=gamma), C)
    if method.startswith("SVR"):
        return SVR(C=C, gamma=gamma).fit(data.X, data.y).predict
    return KernelRankSVM(C, gamma=gamma).fit(data.X, data.y, qid=data.qid).predict


def report(options) -> str:
    """The page."""
    warnings.simplefilter("ignore")
    small = options.smoke or data_folder() is None
    parts = [
        "## Five folds",
        "Of every method the model with the best MAP on the validation part, among its settings and its rounds or "
        "epochs; mean test figures of five folds, as LETOR's tool counts them (NDCG@k of shorter lists is 0). Features "
        "as the files have them. SGD, networks and boosting of weak rankers are `benchmarks/_baselines.py`, a page of "
        "NumPy each: what their papers say, without their tuning. Published rows: Xu et al. (2019), MAP and NDCG@1, 3, "
        "5; their convention is not known. Seconds are those of the whole grid on a shared machine.",
    ]
    for dataset in (TINY,) if small else REAL:
        parts += five_folds(dataset, small, options.cache)
    parts += kernels(TINY if small else "MQ2008", small)
    return page("RankSVM beside classical learners to rank", "baselines", options, parts, "lightgbm")


def main(argv=None):
    """Run from the command line."""
    options = arguments(
        __doc__, argv, ("--cache", {"type": Path, "help": "keeps the row of every method; the same command continues"})
    )
    publish(report(options), options)


if __name__ == "__main__":
    main()
