"""Quality of low-rank models on the official folds: random search of one budget for each, beside published figures.

python benchmarks/low_rank.py --cache CACHE -o benchmarks/results/low_rank.md

The search takes longer than a sitting: fits are kept in the cache, and --seconds ends a run early; the next one goes on
where it stopped, and the one that finds all fits done writes the page.
"""

import numpy as np

from _common import arguments, page, publish, required_data, table
from _low_rank_data import FOLDS, REAL, TINY
from _low_rank_models import MODELS, PATIENCE
from _low_rank_search import Cache, choices_of, complete, search_options, search_tasks
from _low_rank_tables import Choices, claims, figures_table, params_table, tests_table
from ranksvm import read_letor
from ranksvm.data import shared_documents

COMPARED = tuple(model for model in MODELS if model != "refitted")


# -- statistics --------------------------------------------------------------------------------------------------------


def n_pairs(y: np.ndarray) -> int:
    """Number of pairs of a query."""
    _, counts = np.unique(y, return_counts=True)
    return (len(y) ** 2 - int(counts @ counts)) // 2


def statistics(name: str) -> list[str]:
    """A row of the table of statistics: the queries of all five test parts, which are those of the data set."""
    parts = [read_letor(required_data() / name / f"Fold{fold}" / "test.txt.gz") for fold in FOLDS]
    y, qid, docid = (np.concatenate([getattr(part, field) for part in parts]) for field in ("y", "qid", "docid"))
    sizes = [len(rows) for part in parts for _, rows in part.queries]
    pairs = sum(n_pairs(part.y[rows]) for part in parts for _, rows in part.queries)
    found = shared_documents(docid, qid)
    per_query = found.shared_per_query
    return [
        name,
        f"{len(sizes):,}",
        f"{found.n_rows:,} / {found.n_documents:,}",
        f"{parts[0].n_features}",
        " / ".join(f"{int(np.sum(y == label)):,}" for label in np.unique(y)[::-1]),
        f"{pairs:,}",
        f"{np.mean(sizes):.1f}",
        f"{100 * found.n_shared / found.n_documents:.1f} %",
        f"{per_query.mean():.1f} / {np.median(per_query):.0f} / {per_query.max()}",
        f"{100 * found.share_per_query.mean():.1f} %",
    ]


STATISTICS = [
    "data",
    "queries",
    "rows / documents",
    "features",
    "rows by label, best first",
    "pairs",
    "rows a query",
    "documents in several queries",
    "of a query also in another: mean / median / most",
    "share of a query, mean",
]


# -- the page ----------------------------------------------------------------------------------------------------------


def ranges_table(models: list[str]) -> str:
    """What is drawn of each model."""
    rows = [(MODELS[model].label, name, str(each)) for model in models for name, each in MODELS[model].ranges.items()]
    return table(["model", "parameter", "drawn from"], rows)


def quality(cache: Cache, data: str, folds, models: list[str], options) -> list[str]:
    """The part of the page on one data set."""
    choices = Choices(cache, [data], folds, models, options.candidates, options.metric)
    taken = [
        (MODELS[model].label, f"{choices.seconds(model, options.candidates, folds, options.metric):.1f}")
        for model in models
    ]
    return [
        f"## {data}",
        "Test figures, mean ± standard deviation over the folds; the best of ours in bold:",
        figures_table(choices),
        "The same models as LETOR's own tool counts (discount 1 / log2(max(2, rank)), lists shorter than k are 0):",
        figures_table(choices, "letor"),
        "Differences from the plain model over the queries of all test parts, with 95 % intervals and the p-value of "
        "the paired randomisation test (10,000 permutations); in bold where p is at most 0.05. No correction for the "
        "number of comparisons is made:",
        tests_table(choices),
        "### What holds",
        claims(choices),
        "### What was chosen",
        params_table(choices),
        "All fits of the search, one thread each, seconds:",
        table(["model", "seconds"], taken),
    ]


def introduction(options, models: list[str]) -> list[str]:
    """What is done, in words."""
    return [
        f"Of each model {options.candidates} candidates are drawn at random in each fold, fitted to the training part, "
        f"and the one whose {options.metric.upper()} on the validation part is highest is taken; the test part is "
        f"looked at once, for the table. Boosted trees and factorised models stop after {PATIENCE} rounds or epochs "
        f"without a better {options.metric.upper()} on the validation part. Features are as LETOR ships them "
        "(normalised per query). Measures: gain 2^label - 1, discount 1 / log2(1 + rank), ties averaged, a query "
        "without a relevant document counts 0. Published rows: Xu et al., IEEE TKDE 2019, on the same folds; the "
        "convention of their tool is not known to us, so figures are given in two, and the published rows are repeated "
        "beside both.",
        "C counts in full for every pair of a query, and the plain model is solved exactly: its best C lies far below "
        "the range 0.1 to 10 that the paper searches for its models, so it is drawn from 2^-20 to 2^5. "
        '"C as published" is the exact hinge model held to the paper\'s range.',
        ranges_table(models),
    ]


def report(options) -> str:
    """The page."""
    if options.smoke:
        options.candidates, options.processes = 2, 0
    cache = Cache(options.cache)
    names = [TINY] if options.smoke else choices_of(options.data, REAL)
    folds = [1, 2] if options.smoke else list(FOLDS)
    models = choices_of(options.models, MODELS)
    search = (folds, models, options.candidates, options.metric)
    complete([task for name in names for task in search_tasks(name, *search)], cache, options)
    parts = introduction(options, models)
    if not options.smoke:
        parts += ["## Statistics", table(STATISTICS, [statistics(name) for name in names])]
    for name in names:
        parts += quality(cache, name, folds, models, options)
    return page("Low-rank RankSVM on the official folds", "low_rank", options, parts, "xgboost-cpu", "lightgbm")


def main(argv=None):
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--data", {"default": ",".join(REAL), "help": "data sets, separated by commas"}),
        ("--models", {"default": ",".join(COMPARED), "help": f"models, separated by commas, of {', '.join(MODELS)}"}),
        *search_options(),
    )
    publish(report(options), options)


if __name__ == "__main__":
    main()
