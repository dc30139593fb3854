"""The losses: optima and time of the hinge, quality, cost of weights of pairs, and the logistic loss.

The hinge is compared with known optima and with the time of the squared hinge, the logistic loss with scikit-learn's
logistic regression.

python benchmarks/losses.py -o benchmarks/results/losses.md
"""

import csv
import itertools
from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression

from _common import (
    arguments,
    data_folder,
    interleaved,
    letor,
    page,
    power_of_two,
    publish,
    read,
    required_data,
    summary,
    table,
    verdict,
)
from published import FOLDS, REFERENCE, svm_rank_table
from ranksvm import Preferences, RankingData, RankSVM, RankSVMCV, make_ranking, read_letor
from ranksvm.data import ComparablePairs
from ranksvm.losses import Hinge, SquaredHinge

SEED = 0
# goal: the largest time of a hinge fit, divided by the time of a squared-hinge fit with the same tolerance
HINGE_LIMIT = 8.0
TOLERANCES = (1e-4, 1e-6)
CS = 2.0 ** np.arange(-15, 11)
# goal: the speed of a fit relative to scikit-learn's logistic regression, and the accuracy of both
LOGISTIC_LIMIT = 10.0
LOGISTIC_GAP = 1e-4
WEIGHTINGS = ("uniform", "per_query", "label_gap", "gain_gap")


# -- against known optima ----------------------------------------------------------------------------------------------


def optima(repeats: int) -> list[str]:
    """Compare with every optimum in the reference file, at both tolerances."""
    path = required_data().parent / "reference" / "linear_l1_optima.csv"
    if not path.is_file():
        return ["## Against known optima", f"`{path.name}` is absent: not run."]
    rows, sets = [], {}
    with path.open() as file:
        reference = list(csv.DictReader(file))
    for row in reference:
        name, optimum = row["dataset"], float(row["primal_objective"])
        if name not in sets:
            sets[name] = read_letor(required_data() / name / "Fold1" / "train.txt.gz", dtype=np.float64)
        data = sets[name]
        for tol in TOLERANCES:
            model = RankSVM(power_of_two(row["C"]), loss="hinge", tol=tol)
            times = interleaved(
                {"fit": lambda model=model, data=data: model.fit(data.X, data.y, qid=data.qid)}, repeats
            )
            error = model.objective_ / optimum - 1.0
            rows.append(
                (
                    name,
                    row["C"],
                    f"{tol:.0e}",
                    f"{error:.1e}",
                    verdict(error, tol),
                    f"{model.duality_gap_ / model.objective_:.1e}",
                    model.n_iter_,
                    f"{model.width_:.1e}",
                    summary(times["fit"]),
                )
            )
    header = ["data", "C", "tol", "error", "limit", "certificate", "iterations", "last width", "seconds"]
    return [
        "## Against known optima",
        "Fold 1, `train.txt`; relative distance of the objective from the optimum found by brute force over explicit "
        f"pairs (to about eight digits). Seconds: least / median of {repeats} rounds.",
        table(header, rows),
    ]


# -- quality -----------------------------------------------------------------------------------------------------------


def quality() -> list[str]:
    """Five folds of MQ2008 and OHSUMED with C chosen on validation data, compared with SVM-rank (hinge loss)."""
    names, rows = ["mean_ndcg", "map"], []
    for dataset in REFERENCE:
        theirs = svm_rank_table(dataset, "NDCG")
        for loss, weighting in itertools.product(("squared_hinge", "hinge", "huber"), ("uniform", "per_query")):
            options = {"loss": loss, "pair_weighting": weighting, "metric": "mean_ndcg", "convention": "letor"}
            found = []
            for fold in FOLDS:
                train, vali, test = (read(dataset, fold, part) for part in ("train", "vali", "test"))
                ranker = RankSVMCV(CS, **options)
                ranker.fit(train.X, train.y, qid=train.qid, eval_set=(vali.X, vali.y), eval_qid=vali.qid)
                means = letor(test, ranker.predict(test.X), names).means
                found.append([means[name] for name in names])
            rows.append((dataset, loss, weighting, *(f"{value:.4f}" for value in np.mean(found, axis=0))))
        mean = np.mean([[theirs[fold][name] for name in names] for fold in FOLDS], axis=0)
        rows.append((dataset, "SVM-rank", "", *(f"{value:.4f}" for value in mean)))
    return [
        "## Quality",
        "Test figures, means over five folds, LETOR's convention; C from 2^-15 to 2^10 chosen by mean NDCG on "
        "validation data. SVM-rank minimizes the hinge loss; its figures are those it left, its C chosen by NDCG.",
        table(["data", "loss", "weighting", "mean NDCG", "MAP"], rows),
    ]


# -- against the squared hinge -----------------------------------------------------------------------------------------


def fitted(data: RankingData, C: float, **options) -> RankSVM:
    """Fit a `RankSVM` with some options."""
    return RankSVM(C, **options).fit(data.X, data.y, qid=data.qid)


def against_squared_hinge(data: RankingData, repeats: int) -> list[str]:
    """Time of a hinge fit divided by the time of the default fit."""
    rows = []
    for C in (1e-4, 1e-2, 1.0):
        actions = {"squared hinge": lambda C=C: fitted(data, C)}
        for tol in TOLERANCES:
            actions[f"hinge, {tol:.0e}"] = lambda C=C, tol=tol: fitted(data, C, loss="hinge", tol=tol)
        interleaved(actions, 1)
        times = interleaved(actions, repeats)
        base = times["squared hinge"].min()
        for name, action in actions.items():
            fit = action()
            ratio = times[name].min() / base
            limit = HINGE_LIMIT if name == "hinge, 1e-04" else np.inf
            rows.append(
                (
                    f"{C:g}",
                    name,
                    summary(times[name]),
                    f"{ratio:.2f}",
                    verdict(ratio, limit) if np.isfinite(limit) else "",
                    fit.n_iter_,
                    f"{fit.history_['evaluations'][-1]} / {fit.history_['hessian_products'][-1]}",
                    f"{fit.duality_gap_ / fit.objective_:.1e}",
                    "" if fit.width_ is None else f"{fit.width_:.1e}",
                )
            )
    work = ["iterations", "evaluations / products", "certificate", "width"]
    return [
        f"## Against the squared hinge: {data.n_rows:,} x {data.n_features}, 120 documents a query",
        f"Default fits, seconds, least / median of {repeats} rounds in turns; ratio of the least times. Only passes "
        "over the whole data are counted, not those over the sample that begins each fit.",
        table(["C", "loss, tol", "seconds", "ratio", "limit", *work], rows),
    ]


def parts_of_a_pass(data: RankingData, repeats: int) -> list[str]:
    """Times of the two losses on one thread, without X, which show the sweep's share of a fit."""
    pairs = ComparablePairs.from_labels(data.queries, data.y.astype(float))
    rng = np.random.default_rng(SEED)
    w = rng.standard_normal(data.n_features).astype(data.X.dtype)
    scores = (data.X @ (0.3 * w)).astype(np.float64)
    v, out = rng.standard_normal(data.n_rows), np.empty(data.n_rows)
    actions = {"X @ w, NumPy's own threads": lambda: data.X @ w}
    for name, (loss, width) in {
        "squared hinge": (SquaredHinge(pairs), None),
        "hinge, width 1": (Hinge(pairs), 1.0),
        "hinge, width 0.02": (Hinge(pairs), 0.02),
    }.items():
        state = loss.new_state()

        def evaluate(loss=loss, state=state, width=width):
            loss.evaluation(state, width)(0, pairs.n_queries, scores, out)

        def product(loss=loss, state=state):
            loss.hessian(state)(0, pairs.n_queries, v, out)

        actions |= {f"value and gradient, {name}": evaluate, f"Hessian product, {name}": product}
    interleaved(actions, 1)
    times = interleaved(actions, repeats)
    rows = [(name, summary(values), f"{1e9 * values.min() / data.n_rows:.0f}") for name, values in times.items()]
    return [
        "## What limits it",
        f"The sweeps over all scores on one thread, apart from X; least / median of {repeats} rounds. A hinge needs "
        "both edges of a ring of margins: two windows instead of one, and twice the columns of sums, so that narrow "
        "rings lose no digits. The other part of the ratio is the number of steps: those that narrow the width, and "
        "those after them.",
        table(["what", "seconds", "ns a document"], rows),
    ]


# -- weights and choices of pairs --------------------------------------------------------------------------------------


def weightings(data: RankingData, repeats: int) -> list[str]:
    """Time of a fit with each weighting and selection, divided by the time with uniform weights of all pairs."""
    choices = [(weighting, selection) for selection in ("all", "adjacent") for weighting in WEIGHTINGS]
    total = weight_of_pairs(data, "uniform", "all")
    rows = []
    for loss in ("squared_hinge", "hinge"):
        actions = {}
        for weighting, selection in choices:
            options = {"loss": loss, "pair_weighting": weighting, "pair_selection": selection}
            C = 1e-4 * total / weight_of_pairs(data, weighting, selection)
            actions[f"{weighting}, {selection}"] = lambda C=C, options=options: fitted(data, C, **options)
        interleaved(actions, 1)
        times = interleaved(actions, repeats)
        base = times["uniform, all"].min()
        for name, action in actions.items():
            fit = action()
            rows.append((loss, name, summary(times[name]), f"{times[name].min() / base:.2f}", fit.n_iter_))
    return [
        f"## Weights and choices of pairs: {data.n_rows:,} x {data.n_features}",
        "C is such that all pairs together weigh as much as at C = 1e-4 with uniform weights of all pairs. Seconds, "
        f"least / median of {repeats} rounds in turns, and their ratio to the first. The problems differ, and with "
        "them the iterations.",
        table(["loss", "weighting, selection", "seconds", "ratio", "iterations"], rows),
    ]


def weight_of_pairs(data: RankingData, weighting: str, selection: str) -> float:
    """The sum of the weights of all pairs."""
    return ComparablePairs.from_labels(
        data.queries, data.y.astype(float), weighting=weighting, selection=selection
    ).weight


# -- against logistic regression ---------------------------------------------------------------------------------------


def listed_pairs(smoke: bool):
    """Listed pairs within queries of 100 rows; preferences follow a logistic model that is linear in the features."""
    n_rows, n_pairs, n = (1000, 2000, 46) if smoke else (100_000, 1_000_000, 46)
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(n_rows, n)) @ (rng.normal(size=(n, n)) * 0.7 ** np.arange(n)).T
    X += 0.3 * rng.normal(size=X.shape)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    i = rng.integers(0, n_rows, n_pairs)
    j = i // 100 * 100 + (i + rng.integers(1, 100, n_pairs)) % 100
    margins = (X[i] - X[j]) @ (4.0 * rng.normal(size=n))
    wrong = rng.random(n_pairs) > 1.0 / (1.0 + np.exp(-margins))
    i, j = np.where(wrong, j, i), np.where(wrong, i, j)
    pairs, qid = np.column_stack([i, j]), np.arange(n_rows) // 100
    return lambda C, tol: RankSVM(C, loss="logistic", tol=tol).fit(X, pairs=pairs, qid=qid), lambda: X[i] - X[j]


def embeddings(smoke: bool):
    """Preferences between two answers to each prompt, with correlated features of decreasing variance."""
    n_pairs, n = (300, 32) if smoke else (20_000, 768)
    rng = np.random.default_rng(SEED)
    mixing = rng.normal(size=(n, n)) / np.sqrt(n * np.arange(1, n + 1))
    chosen, rejected = rng.normal(size=(2, n_pairs, n)) @ mixing.T + 0.05 * rng.normal(size=(2, n_pairs, n))
    margins = (chosen - rejected) @ (5.0 * rng.normal(size=n))
    wrong = (rng.random(n_pairs) > 1.0 / (1.0 + np.exp(-margins)))[:, np.newaxis]
    data = Preferences(np.where(wrong, rejected, chosen), np.where(wrong, chosen, rejected))
    return lambda C, tol: RankSVM(C, loss="logistic", tol=tol).fit(data), lambda: data.chosen - data.rejected


def accurate_regression(D: np.ndarray, C: float, optimum: float):
    """scikit-learn's fit to differences with the largest sufficient tol, this tol, and the relative gap."""
    sign = np.where(np.arange(len(D)) % 2, 1.0, -1.0)  # LogisticRegression needs two classes

    def fit(tol: float):
        model = LogisticRegression(C=C, fit_intercept=False, tol=tol, max_iter=10_000)
        return model.fit(sign[:, np.newaxis] * D, sign).coef_[0]

    for tol in 10.0 ** -np.arange(2, 9):
        w = fit(tol)
        gap = (0.5 * w @ w + C * np.logaddexp(0.0, -(D @ w)).sum()) / optimum - 1.0
        if gap <= LOGISTIC_GAP:
            break
    return partial(fit, tol), tol, gap


def against_logistic_regression(smoke: bool, repeats: int) -> list[str]:
    """Time of scikit-learn's logistic regression on differences, divided by our time with the logistic loss."""
    rows = []
    for make, Cs in ((listed_pairs, (1e-3, 1.0)), (embeddings, (1e-2, 1.0))):
        fit, differences = make(smoke)
        D = differences()
        for C in Cs:
            optimum = fit(C, 1e-9).objective_
            regression, tol, gap = accurate_regression(D, C, optimum)
            actions = {"ours": partial(fit, C, LOGISTIC_GAP), "differences": differences, "regression": regression}
            times = interleaved(actions, repeats)
            ours = fit(C, LOGISTIC_GAP).objective_ / optimum - 1.0
            base, forming, theirs = (np.median(times[name]) for name in actions)
            data = f"{len(D):,} x {D.shape[1]}"
            ratio = theirs / base
            limit = "met" if ratio >= LOGISTIC_LIMIT else "not met"
            found = f"{ratio:.1f}", f"{(theirs + forming) / base:.1f}", limit
            own = "RankSVM", f"{LOGISTIC_GAP:g}", f"{ours:.0e}", summary(times["ours"])
            rows.append((data, f"{C:g}", *own, *found))
            other = "LogisticRegression", f"{tol:g}", f"{gap:.0e}", summary(times["regression"])
            rows.append((data, f"{C:g}", *other, "", "", ""))
    return [
        "## The logistic loss against logistic regression",
        "Made pairs, as many as rows of differences: of 100,000 documents in queries of 100, and of two answers to a "
        "prompt. scikit-learn's `LogisticRegression(fit_intercept=False)` (L-BFGS) on the differences, with the "
        f"largest tol (a power of 10) that gives an objective within {LOGISTIC_GAP:g} of the optimum. Seconds, least / "
        f"median of {repeats} rounds in turns; ratios of medians, to be at least {LOGISTIC_LIMIT:g}, without and with "
        "the time to form the differences.",
        table(
            ["pairs", "C", "model", "tol", "gap", "seconds", "ratio", "with differences", f"{LOGISTIC_LIMIT:g} times"],
            rows,
        ),
    ]


def report(options) -> str:
    """The page."""
    smoke, repeats = options.smoke, 1 if options.smoke else options.repeats
    parts = [] if smoke or data_folder() is None else [*optima(repeats), *quality()]
    data = make_ranking(20 if smoke else 5834, 120, 136, random_state=SEED)
    parts += against_squared_hinge(data, repeats)
    parts += parts_of_a_pass(data, repeats)
    parts += weightings(data, min(repeats, 3))
    parts += against_logistic_regression(smoke, min(repeats, 3))
    return page("Losses, and pairs by weight", "losses", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv, ("--repeats", {"type": int, "default": 5, "help": "rounds"}))
    publish(report(options), options)


if __name__ == "__main__":
    main()
