"""Quality: objectives compared with optima found by brute force, and five-fold tables compared with published figures.

python benchmarks/published.py -o benchmarks/results/published.md
"""

import csv
import re
import warnings

import numpy as np

from _common import arguments, letor, page, power_of_two, publish, read, required_data, table
from papers.lee_lin_2014 import PRINTED_QUALITY
from ranksvm import RankingData, RankSVM, RankSVMCV, metrics

# The metrics in LETOR's tables.
NDCG = [*(f"ndcg@{k}" for k in range(1, 11)), "mean_ndcg"]
FOLDS = range(1, 6)
# Folders of SVM-rank's results by data set.
REFERENCE = {"MQ2008": "Mq2008", "OHSUMED": "OHSUMED"}
WITHIN = 0.005


# -- optima ------------------------------------------------------------------------------------------------------------


def optima(smoke: bool) -> list[str]:
    """Compare each reference optimum with ours, at the default tolerance and at 1e-8."""
    path = required_data().parent / "reference" / "linear_l2_optima.csv"
    with open(path, newline="") as file:
        references = list(csv.DictReader(file))
    rows, worst, parts = [], {}, {}
    for reference in references[:2] if smoke else references:
        dataset, C = reference["dataset"], power_of_two(reference["C"])
        if dataset not in parts:
            train = read(dataset, part="train")
            parts[dataset] = train, read(dataset, part="test", n_features=train.n_features, sparse=None)
        train, test = parts[dataset]
        optimum = float(reference["optimal_objective"])
        for tol in (1e-4, 1e-8):
            ranker = RankSVM(C=C, tol=tol).fit(train.X, train.y, qid=train.qid)
            found = letor(test, ranker.predict(test.X), ["pairwise_accuracy", "mean_ndcg"])
            difference = (ranker.objective_ - optimum) / optimum
            accuracy_off = found["pairwise_accuracy"] - float(reference["test_pairwise_accuracy"])
            ndcg_off = found["mean_ndcg"] - float(reference["test_letor_mean_ndcg"])
            rows.append(
                (
                    f"{dataset}, {reference['C']}",
                    f"{tol:.0e}",
                    f"{ranker.objective_:.10g}",
                    f"{difference:.1e}",
                    f"{ranker.duality_gap_ / ranker.objective_:.1e}",
                    f"{found['pairwise_accuracy']:.6f}",
                    f"{accuracy_off:+.6f}",
                    f"{found['mean_ndcg']:.6f}",
                    f"{ndcg_off:+.6f}",
                )
            )
            largest = worst.setdefault(tol, [0.0, 0.0, 0.0])
            for place, value in enumerate((difference, accuracy_off, ndcg_off)):
                largest[place] = max(largest[place], abs(value))
    header = ["fold 1, C", "tol", "objective", "over optimum (relative)", "certificate (relative)"]
    header += ["test pairwise accuracy", "off", "test mean NDCG", "off"]
    lines = [
        f"- tol = {tol:.0e}: objective at most {o:.1e} (relative) from the optimum, test pairwise accuracy {a:.1e} and "
        f"mean NDCG {n:.1e} from the optimum's."
        for tol, (o, a, n) in worst.items()
    ]
    return [
        "## Objectives beside optima found by brute force over explicit pairs",
        "Features in float32, sums in float64. The largest differences over all rows:",
        "\n".join(lines),
        table(header, rows),
    ]


def published_accuracy() -> list[str]:
    """The published pairwise accuracy of MQ2008 fold 1."""
    printed = PRINTED_QUALITY["MQ2008"]["pairwise_accuracy"]
    train, test = read("MQ2008", part="train"), read("MQ2008", part="test")
    ranker = RankSVM(C=printed.C).fit(train.X, train.y, qid=train.qid)
    ours = 100 * letor(test, ranker.predict(test.X), ["pairwise_accuracy"])["pairwise_accuracy"]
    verdict = "within" if abs(ours - printed.figure) <= 0.02 else "NOT within"
    return [
        "## Published pairwise accuracy",
        f"MQ2008 fold 1, C = 2^7, default tol: {ours:.2f} % on the test part, published {printed.figure:.2f} % "
        f"(Lee & Lin 2014): {verdict} 0.02 points.",
    ]


# -- five folds --------------------------------------------------------------------------------------------------------


def svm_rank_table(dataset: str, chosen_by: str) -> dict[int, dict[str, float]]:
    """SVM-rank's test figures, by fold and metric, for models chosen by NDCG or by MAP."""
    folder = REFERENCE[dataset]
    text = (required_data() / "reference-svm_rank" / "eval" / folder / f"{chosen_by}_{folder}_svm_rank").read_text()
    figures: dict[int, dict[str, float]] = {}
    names: list[str] = []
    for line in text.split("alidation set")[0].splitlines():
        if line.startswith("Folds"):
            names = [{"MeanNDCG": "mean_ndcg"}.get(name, name.lower()) for name in line.split()[1:]]
        elif found := re.match(r"Fold(\d)\s", line):
            values = map(float, line.split()[1:])
            figures.setdefault(int(found[1]), {}).update(zip(names, values, strict=True))
    return figures


def five_folds(dataset: str, metric: str, smoke: bool) -> tuple[list[str], list[tuple[RankingData, np.ndarray]]]:
    """Choose C by a metric on validation data; return the table of a data set, and the test scores of every fold."""
    names = [*NDCG, "map"]
    theirs = svm_rank_table(dataset, "NDCG" if metric == "mean_ndcg" else "MAP")
    rows, scored, ours, reference = [], [], [], []
    for fold in list(FOLDS)[:1] if smoke else FOLDS:
        train, vali, test = (read(dataset, fold, part) for part in ("train", "vali", "test"))
        ranker = RankSVMCV(metric=metric, convention="letor", Cs=[2.0**-10, 2.0**-5] if smoke else None)
        ranker.fit(train.X, train.y, qid=train.qid, eval_set=(vali.X, vali.y), eval_qid=vali.qid)
        scores = ranker.predict(test.X)
        found = letor(test, scores, names).means
        ours.append([found[name] for name in names])
        reference.append([theirs[fold][name] for name in names])
        rows.append([f"{fold}: ours, C = 2^{np.log2(ranker.C_):.0f}", *(f"{found[name]:.4f}" for name in names)])
        rows.append([f"{fold}: SVM-rank", *(f"{theirs[fold][name]:.4f}" for name in names)])
        scored.append((test, scores))
    ours_mean = np.mean(ours, axis=0)
    theirs_mean = np.mean(reference, axis=0)
    rows.append(["**mean: ours**", *(f"**{value:.4f}**" for value in ours_mean)])
    rows.append(["**mean: SVM-rank**", *(f"**{value:.4f}**" for value in theirs_mean)])
    rows.append(["difference", *(f"{value:+.4f}" for value in ours_mean - theirs_mean)])
    verdicts = []
    for name in ("mean_ndcg", "map"):
        off = (ours_mean - theirs_mean)[names.index(name)]
        verdicts.append(f"{name} {off:+.4f}: {'better or within' if off >= -WITHIN else 'MISSES'} {WITHIN}")
    parts = [
        f"## {dataset}, five folds, C chosen by {metric} on validation data",
        "; ".join(verdicts) + ".",
        table(["fold", *names], rows),
    ]
    return parts, scored


def significance(dataset: str, scored: list[tuple[RankingData, np.ndarray]]) -> list[str]:
    """Paired tests over the queries of all test parts, against the scores of SVM-rank (with C chosen by NDCG)."""
    labels, queries, ours, theirs = [], [], [], []
    folder = required_data() / "reference-svm_rank" / "data" / REFERENCE[dataset]
    for fold, (test, scores) in zip(FOLDS, scored, strict=False):
        labels.append(test.y)
        queries.append(test.qid)
        ours.append(scores)
        theirs.append(np.loadtxt(folder / f"Fold{fold}" / "test_score"))
    y, qid = np.concatenate(labels), np.concatenate(queries)
    names = ["mean_ndcg", "map", "ndcg@10", "pairwise_accuracy"]
    reference = metrics.evaluate(y, np.concatenate(theirs), qid, names, convention="letor")
    found = metrics.evaluate(y, np.concatenate(ours), qid, names, convention="letor")
    rows = []
    for name in names:
        test = metrics.compare(reference, found, name)
        low, high = test.confidence_interval
        rows.append(
            (
                name,
                f"{test.mean_b:.4f}",
                f"{test.mean_a:.4f}",
                f"{test.difference:+.4f} [{low:+.4f}, {high:+.4f}]",
                f"{test.p_value:.3f}",
                f"{test.t_p_value:.3f}",
                f"{test.wins} / {test.losses} / {test.ties}",
            )
        )
    header = ["metric", "ours", "SVM-rank", "difference [95 %]", "p (randomization)", "p (t)", "wins / losses / ties"]
    return [
        f"Paired tests over the {found.n_queries} test queries of {dataset}, ours (C chosen by mean NDCG) against the "
        "scores SVM-rank left (its C chosen by NDCG):",
        table(header, rows),
    ]


def report(options) -> str:
    """The page."""
    warnings.simplefilter("error")
    parts = [*optima(options.smoke), *published_accuracy()]
    for dataset in ["MQ2008"] if options.smoke else REFERENCE:
        by_ndcg, scored = five_folds(dataset, "mean_ndcg", options.smoke)
        by_map, _ = five_folds(dataset, "map", options.smoke)
        parts += [*by_ndcg, *significance(dataset, scored), *by_map]
    title = "Objectives, published figures and SVM-rank's tables"
    return page(title, "published", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv)
    publish(report(options), options)


if __name__ == "__main__":
    main()
