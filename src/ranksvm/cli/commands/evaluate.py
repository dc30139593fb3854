"""``ranksvm evaluate``: metrics of models, score files and runs, side by side."""

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm._util.tables import CORRECTIONS
from ranksvm._util.text import plain
from ranksvm.cli.clicks import check_clicks, click_options, estimator_options, evaluate_clicks
from ranksvm.cli.files import (
    is_model,
    load_scorer,
    model_scores,
    names_of,
    read,
    read_judgments,
    read_numbers,
    read_rankings,
    write_text,
)
from ranksvm.cli.options.paths import titled
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    TEXT_FILE,
    Name,
    check_reading_options,
    convention_option,
    given,
    json_option,
    metrics_option,
    quiet_option,
    reading_options,
)
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import count, notes_on, number, print_json, print_table, queries, tab_separated
from ranksvm.cli.terminal import say

if TYPE_CHECKING:
    import numpy as np

    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.datasets.runs import Qrels, Run
    from ranksvm.metrics import Evaluation

# Maximum number of systems for which the table has intervals of the metrics.
_WITH_INTERVALS = 2


@click.command("evaluate", short_help="Evaluate models, score files and TREC runs, side by side.")
@click.argument("inputs", metavar="DATA|RUN...", nargs=-1, required=True, type=EXISTING_FILE)
@click.option(
    "-m", "--model", "models", type=EXISTING_FILE, multiple=True, metavar="FILE", help="Model file; may be repeated."
)
@click.option(
    "-s",
    "--scores",
    "score_files",
    type=EXISTING_FILE,
    multiple=True,
    metavar="FILE",
    help="File with one score per line, in the order of the data; may be repeated.",
)
@click.option(
    "--run",
    "runs",
    type=EXISTING_FILE,
    multiple=True,
    metavar="FILE",
    help="TREC run with the queries and documents of DATA; may be repeated.",
)
@click.option(
    "--qrels",
    type=EXISTING_FILE,
    metavar="FILE",
    help="TREC judgments, instead of the labels of DATA. Without --model and --scores the arguments are runs.",
)
@click.option(
    "--missing",
    type=click.Choice(["zero", "skip"]),
    default="zero",
    show_default=True,
    help="Whether a judged query that is not in a run counts as 0 (trec_eval -c) or is ignored.",
)
@metrics_option("ndcg@1,ndcg@3,ndcg@5,ndcg@10,map,mrr,pairwise_accuracy")
@convention_option(default=None, shown="default; with runs or --qrels: trec")
@click.option(
    "--compare",
    "against",
    type=click.Choice(["first", "all"]),
    default="first",
    show_default=True,
    help="Compare every other system with the first one, or all pairs.",
)
@click.option(
    "--correction",
    type=Name(list(CORRECTIONS)),
    default="holm",
    show_default=True,
    help="Correction of the p-values for the number of comparisons of a metric.",
)
@click.option("--per-query", type=TEXT_FILE, metavar="FILE", help="Write every metric of every query (tab-separated).")
@click_options
@estimator_options
@reading_options
@json_option
@quiet_option
@debug_option
@click.pass_context
def evaluate_command(ctx: click.Context, inputs: tuple[Path, ...], **options: Any) -> None:
    """Evaluate how well models, score files or TREC runs rank the documents of DATA.

    If there are several systems (models first, then score files, then runs), each is compared with the first one by a
    paired test over the queries. With --qrels and neither --model nor --scores, the arguments are runs, judged as
    trec_eval does.

    With --clicks there are no labels: metrics (dcg@k, mrr@k, mean_relevant_rank) are estimated from clicks on the lists
    of other rankers.

    \b
    Examples:
      ranksvm evaluate test.txt --model a.rsvm --model b.rsvm --metrics ndcg@10,map --convention letor
      ranksvm evaluate bm25.run ours.run --qrels qrels.txt --metrics nDCG@10,AP --compare all --correction tukey
      ranksvm evaluate docs.txt --clicks log.parquet --bias bias.json --model new.rsvm --metrics dcg@10
    """
    from ranksvm.metrics import parse_metrics

    check_clicks(options)
    if options["clicks"] is not None:
        if len(inputs) > 1:
            raise click.UsageError(f"one DATA file is evaluated at a time, got {len(inputs)}.")
        evaluate_clicks(ctx, inputs[0], options)
        return
    for name in ("estimator", "clip"):
        if given(name):
            raise click.UsageError(f"--{name} needs a click log: give --clicks as well.")

    _resolve_options(inputs, options)
    _refuse_without_use(options)
    metrics = [metric.name for metric in parse_metrics(options["metrics"])]
    results = _Evaluator(options, metrics).results()
    comparisons = _compare(results, metrics, options)
    if options["per_query"] is not None:
        write_text(options["per_query"], _per_query_lines(results, metrics))
        if not options["quiet"]:
            say(f"Wrote {options['per_query']}", err=True)
    if options["as_json"]:
        print_json(_document(results, comparisons, options))
    else:
        _show(results, comparisons, options)


def _resolve_options(inputs: tuple[Path, ...], options: dict[str, Any]) -> None:
    """Decide whether the arguments are data or runs, and set the defaults that depend on the decision."""
    options["data"] = None
    for path in inputs:
        if is_model(path):
            raise click.UsageError(f"{path} is a model: ranksvm evaluate DATA --model {path}.")
    if options["qrels"] is not None and not options["models"] and not options["score_files"]:
        options["runs"] = (*inputs, *options["runs"])
    elif len(inputs) > 1:
        raise click.UsageError(
            f"one DATA file is evaluated at a time, got {len(inputs)} (runs need --qrels, or --run)."
        )
    else:
        options["data"] = inputs[0]
    if not (options["models"] or options["score_files"] or options["runs"]):
        raise click.UsageError("nothing to evaluate: give --model or --scores (or --run; or runs and --qrels).")
    options["judged"] = options["qrels"] is not None or bool(options["runs"])
    if options["convention"] is None:
        options["convention"] = "trec" if options["judged"] else "default"


def _refuse_without_use(options: dict[str, Any]) -> None:
    """Refuse options that would change nothing."""
    check_reading_options(options["data"] is not None)
    if given("missing") and not options["judged"]:
        raise click.UsageError("--missing is about judged queries that a run lacks: give --run or --qrels.")
    if sum(len(options[name]) for name in ("models", "score_files", "runs")) < 2:
        for name, option in (("against", "--compare"), ("correction", "--correction")):
            if given(name):
                raise click.UsageError(f"{option} needs several systems, but only one is evaluated.")


class _Evaluator:
    """Reads the files and evaluates every system."""

    def __init__(self, options: dict[str, Any], metrics: list[str]):
        self._options, self._metrics = options, metrics

    def results(self) -> "dict[str, Evaluation]":
        """Evaluations by the name of the system."""
        options = self._options
        models, score_files, runs = options["models"], options["score_files"], options["runs"]
        loaded = [load_scorer(path) for path in models]
        names = iter(names_of([*models, *score_files, *runs]))
        results = {}
        with Progress(options["quiet"]) as progress:
            rows: Any = None
            if options["data"] is not None:
                labels = options["qrels"] is None
                rows = read(
                    options["data"], progress, Stopwatch(), options["reading"], require_labels=labels, models=loaded
                )
            qrels = self._qrels(rows) if options["judged"] else None
            for path, model in zip(models, loaded, strict=True):
                progress.now(f"Evaluating {path}")
                results[next(names)] = self._scored(rows, model_scores(model, rows, options["data"]), qrels)
            for path in score_files:
                progress.now(f"Evaluating {path}")
                results[next(names)] = self._scored(rows, read_numbers(path, rows.n_rows, "score"), qrels)
            for path in runs:
                progress.now(f"Evaluating {titled(path)}")
                results[next(names)] = self._run(path, qrels, progress)
        return results

    def _qrels(self, rows: "RankingData") -> "Qrels":
        from ranksvm.datasets.runs import Qrels

        return read_judgments(self._options["qrels"]) or Qrels.from_data(rows)

    def _scored(self, rows: "RankingData", scores: "np.ndarray", qrels: "Qrels | None") -> "Evaluation":
        from ranksvm.datasets.runs import Run
        from ranksvm.metrics import evaluate

        if qrels is not None:
            return self._judged(Run.from_scores(rows, scores), qrels)
        convention = self._options["convention"]
        return evaluate(rows.y, scores, rows.query_ids, self._metrics, convention=convention, docid=rows.docid)

    def _run(self, path: Path, qrels: "Qrels | None", progress: Progress) -> "Evaluation":
        from ranksvm.datasets.runs import places_by_ids, places_of

        assert qrels is not None
        run = read_rankings(path)
        judged, ranked = (each.queries.ids.tolist() for each in (qrels, run))
        places = places_of(places_by_ids((query,) for query in judged), ((query,) for query in ranked), len(ranked))
        unjudged = int((places < 0).sum())
        if unjudged:
            progress.line(f"{titled(path)}: {queries(unjudged)} without judgments, ignored")
        return self._judged(run, qrels)

    def _judged(self, run: "Run", qrels: "Qrels") -> "Evaluation":
        from ranksvm.metrics import evaluate_run

        convention, missing = self._options["convention"], self._options["missing"]
        return evaluate_run(run, qrels, self._metrics, convention=convention, missing=missing)


def _compare(results: "dict[str, Evaluation]", metrics: list[str], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare every other system with the first, or all pairs, metric by metric."""
    from ranksvm.metrics import compare_systems

    names, first = list(results), next(iter(results.values()))
    if len(names) < 2:
        return []
    if any(set(result.qid) != set(first.qid) for result in results.values()):
        raise click.UsageError("the runs have different queries, so they cannot be compared: use --missing zero.")
    found = []
    for metric in metrics:
        # a metric may be undefined for every query
        if any(math.isnan(result.means[metric]) for result in results.values()):
            continue
        baseline = names[0] if options["against"] == "first" else None
        for test in compare_systems(results, metric, baseline=baseline, correction=options["correction"]):
            values = dataclasses.asdict(test)
            systems = {"baseline": values.pop("system_a"), "system": values.pop("system_b")}
            found.append({**systems, **values, "correction": options["correction"]})
    return found


def _document(
    results: "dict[str, Evaluation]", comparisons: list[dict[str, Any]], options: dict[str, Any]
) -> dict[str, Any]:
    first = next(iter(results.values()))
    return {
        "command": "evaluate",
        "data": None if options["data"] is None else str(options["data"]),
        "qrels": None if options["qrels"] is None else str(options["qrels"]),
        "convention": options["convention"],
        "queries": first.n_queries,
        "queries_without_relevant": first.n_without_relevant,
        "systems": [
            {
                "name": name,
                "metrics": result.means,
                "intervals": {metric: result.interval(metric) for metric in result.means},
                "queries": result.n_queries,
                "queries_missing": result.n_missing,
            }
            for name, result in results.items()
        ],
        "comparisons": comparisons,
        "per_query": None if options["per_query"] is None else str(options["per_query"]),
    }


def _show(results: "dict[str, Evaluation]", comparisons: list[dict[str, Any]], options: dict[str, Any]) -> None:
    first = next(iter(results.values()))
    # with more systems, a table with intervals would not fit into a terminal; the comparisons below have intervals
    with_intervals = len(results) <= _WITH_INTERVALS
    columns, rows = [f"metric ({first.convention})"], [[metric] for metric in first.means]
    for name, result in results.items():
        columns += [name, "95 % interval"] if with_intervals else [name]
        for row, metric in zip(rows, first.means, strict=True):
            row.append(number(result.means[metric]))
            if with_intervals:
                row.append(_interval(result.interval(metric)))
    without = first.n_without_relevant
    judged_by = titled(options["qrels"] if options["data"] is None else options["data"])
    lacking = f", {count(without)} without a relevant document" if without else ""
    print_table(columns, rows, title=f"{judged_by}: {queries(first.n_queries)}{lacking}")
    notes = notes_on(results, options["missing"])
    if notes:
        say()
    for note in notes:
        say(note)
    if comparisons:
        say()
        _show_comparisons(comparisons, options["against"], first.convention)


def _interval(ends: tuple[float, float], sign: str = "") -> str:
    low, high = ends
    return "" if math.isnan(low) else f"[{low:{sign}.4f}, {high:{sign}.4f}]"


def _show_comparisons(comparisons: list[dict[str, Any]], against: str, convention: str) -> None:
    systems = {(test["baseline"], test["system"]) for test in comparisons}
    # with one comparison for each metric there is nothing to correct
    correction = CORRECTIONS[comparisons[0]["correction"]] if len(systems) > 1 else ""
    rows = [
        [
            test["metric"],
            *([test["baseline"]] if against == "all" else []),
            test["system"],
            f"{test['difference']:+.4f}",
            _interval(test["confidence_interval"], "+"),
            number(test["p_value"]),
            *([number(test["adjusted_p_value"])] if correction else []),
            f"{test['wins']}/{test['losses']}/{test['ties']}",
        ]
        for test in comparisons
    ]
    columns = ["difference", "95 % interval", "p", *([correction] if correction else []), "better/worse/same"]
    how = "paired over queries (randomization test)"
    if against == "all":
        print_table([f"metric ({convention})", "a", "b", *columns], rows, title=f"b against a, {how}", left=3)
    else:
        title = f"Against {comparisons[0]['baseline']}, {how}"
        print_table([f"metric ({convention})", "system", *columns], rows, title=title, left=2)


def _per_query_lines(results: "dict[str, Evaluation]", metrics: list[str]) -> Iterator[str]:
    yield tab_separated(["system", "query", *metrics])
    for name, result in results.items():
        columns = [result.per_query[metric].tolist() for metric in metrics]
        for query, *values in zip(plain(result.qid), *columns, strict=True):
            yield tab_separated([name, str(query), *map(repr, values)])
