"""Choose C from 26 values, 2^-15 ... 2^10: time of the path, with scores on validation data, and by five folds.

python benchmarks/model_selection.py -o benchmarks/results/model_selection.md

A plot of the scores for the first data set is written to the same folder.
"""

import numpy as np

from _common import arguments, data_folder, interleaved, page, publish, read, summary, table, verdict
from ranksvm import PathDisplay, RankSVMCV, make_ranking, regularization_path

CS = 2.0 ** np.arange(-15, 11)
FOLDS = 5
# goals: the largest number of seconds for the first data set, MQ2008 fold 1, on two cores
LIMIT = 1.0
SEED = 0


def data_sets(smoke: bool) -> dict:
    """Training and validation part of each data set."""
    names = ["MQ2008"] if smoke else ["MQ2008", "OHSUMED", "MQ2007-partial"]
    sets = {}
    if data_folder() is not None:
        sets = {f"{name} fold 1": (read(name), read(name, part="vali")) for name in names}
    n_queries = 10 if smoke else 1667
    parts = (make_ranking(n, 120, 136, random_state=SEED + n) for n in (n_queries, n_queries // 3))
    sets[f"made, {n_queries * 120:,} x 136"] = tuple(parts)
    return sets


def ranker() -> RankSVMCV:
    """The ranker whose choice of C is timed."""
    return RankSVMCV(CS, cv=FOLDS)


def actions(train, valid) -> dict:
    """The actions that are timed."""
    return {
        "path": lambda: regularization_path(train.X, train.y, qid=train.qid, Cs=CS),
        "validation": lambda: ranker().fit(
            train.X, train.y, qid=train.qid, eval_set=[(valid.X, valid.y)], eval_qid=[valid.qid]
        ),
        "folds": lambda: ranker().fit(train.X, train.y, qid=train.qid),
    }


def cell(times: np.ndarray, limit: float | None) -> str:
    """Minimum and median of some times, and whether a limit is met, as text."""
    return summary(times) if limit is None else f"{summary(times)} ({verdict(times.min(), limit)})"


def plot(train, path) -> None:
    """Scores by folds and weights along C, side by side."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    chosen = ranker().fit(train.X, train.y, qid=train.qid)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    PathDisplay.from_estimator(chosen, ax=left)
    weights = regularization_path(train.X, train.y, qid=train.qid, Cs=CS)
    PathDisplay.from_path(weights, chosen_C=chosen.C_, ax=right)
    temporary = path.with_name(path.stem + ".part.png")
    figure.savefig(temporary, dpi=80)
    temporary.replace(path)
    plt.close(figure)


def report(options) -> str:
    """Make the page, and write the plot."""
    sets, repeats = data_sets(options.smoke), 2 if options.smoke else options.repeats
    rows = []
    for place, (name, (train, valid)) in enumerate(sets.items()):
        limit = LIMIT if place == 0 and data_folder() is not None else None
        run = actions(train, valid)
        times = interleaved(run, repeats)
        on_validation, by_folds = run["validation"](), run["folds"]()
        rows.append(
            (
                name,
                f"{train.n_rows:,} / {valid.n_rows:,}",
                *(cell(values, limit) for values in times.values()),
                " / ".join(f"2^{np.log2(model.C_):.0f}" for model in (on_validation, by_folds)),
            )
        )
    header = ["data", "rows, train / valid", "path, s", "and validation, s", f"{FOLDS} folds and refit, s", "C of each"]
    parts = [
        f"Seconds for {len(CS)} values of C, 2^-15, 2^-14, ..., 2^10, at the default tolerance, all threads: "
        "`regularization_path`; `RankSVMCV` with NDCG@10 on validation data; `RankSVMCV` with five folds of the "
        f"training data. Least / median of {repeats} rounds; the limit is on the least.",
        table(header, rows),
    ]
    if options.output is not None:
        path = options.output.with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        name, (train, _) = next(iter(sets.items()))
        plot(train, path)
        parts += [f"![scores and weights]({path.name})", f"{name}: scores of the folds, and weights, along C."]
    return page("Model selection", "model_selection", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv, ("--repeats", {"type": int, "default": 9, "help": "rounds"}))
    publish(report(options), options)


if __name__ == "__main__":
    main()
