"""``ranksvm evaluate``: metrics of models and score files, side by side."""

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ranksvm.cli.errors import debug_option
from ranksvm.cli.files import load_scorer, model_scores, names_of, query_ids, read, read_numbers, write_text
from ranksvm.cli.options import (
    EXISTING_FILE,
    OUTPUT_FILE,
    convention_option,
    json_option,
    metrics_option,
    quiet_option,
    reading_options,
)
from ranksvm.cli.paths import titled
from ranksvm.cli.progress import Progress, Stopwatch
from ranksvm.cli.tables import count, number, print_json, print_table, queries


@click.command("evaluate", short_help="Evaluate models and score files, side by side.")
@click.argument("data", type=EXISTING_FILE)
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
@metrics_option("ndcg@1,ndcg@3,ndcg@5,ndcg@10,map,mrr,pairwise_accuracy")
@convention_option
@click.option(
    "--per-query", type=OUTPUT_FILE, metavar="FILE", help="Write every metric of every query (tab-separated)."
)
@reading_options
@json_option
@quiet_option
@debug_option
def evaluate_command(
    data: Path,
    models: tuple[Path, ...],
    score_files: tuple[Path, ...],
    metrics: list[str],
    convention: str,
    per_query: Path | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
) -> None:
    """Evaluate how well models or score files rank the documents of DATA.

    With several (models first, then score files), each is compared with the first by a paired test over the queries.

    \b
    ranksvm evaluate test.txt --model a.rsvm --model b.rsvm --metrics ndcg@10,map --convention letor
    """
    if not models and not score_files:
        raise click.UsageError("nothing to evaluate: give --model or --scores.")
    from ranksvm.metrics import parse_metrics

    metrics = [metric.name for metric in parse_metrics(metrics)]
    results = _evaluate(data, models, score_files, metrics, convention, reading, quiet)
    comparisons = _compare(results, metrics)
    if per_query is not None:
        write_text(per_query, _per_query_lines(results, metrics))
        if not quiet:
            click.echo(f"Wrote {per_query}", err=True)
    first = next(iter(results.values()))
    if as_json:
        print_json(
            {
                "command": "evaluate",
                "data": str(data),
                "convention": convention,
                "queries": first.n_queries,
                "queries_without_relevant": first.n_without_relevant,
                "systems": [{"name": name, "metrics": result.means} for name, result in results.items()],
                "comparisons": comparisons,
                "per_query": None if per_query is None else str(per_query),
            }
        )
    else:
        _show(data, results, comparisons)


def _show(data: Path, results: dict[str, Any], comparisons: list[dict[str, Any]]) -> None:
    names, first = list(results), next(iter(results.values()))
    rows = [[metric, *(number(result.means[metric]) for result in results.values())] for metric in first.means]
    without = first.n_without_relevant
    title = f"{titled(data)}: {queries(first.n_queries)}" + (f", {count(without)} without relevant" if without else "")
    print_table([f"metric ({first.convention})", *names], rows, title=title)
    if comparisons:
        click.echo()
        rows = [
            [
                test["metric"],
                test["system"],
                f"{test['difference']:+.4f}",
                f"[{test['confidence_interval'][0]:+.4f}, {test['confidence_interval'][1]:+.4f}]",
                number(test["p_value"]),
                f"{test['wins']}/{test['losses']}/{test['ties']}",
            ]
            for test in comparisons
        ]
        columns = ["metric", "system", "difference", "95 % interval", "p", "better/worse/same"]
        print_table(columns, rows, title=f"Against {names[0]}, paired over queries (randomisation test)", left=2)


def _evaluate(
    data: Path,
    models: tuple[Path, ...],
    score_files: tuple[Path, ...],
    metrics: list[str],
    convention: str,
    reading: dict[str, Any],
    quiet: bool,
) -> dict[str, Any]:
    """Results by the name of the system."""
    from ranksvm.metrics import evaluate

    loaded = [load_scorer(path) for path in models]
    with Progress(quiet) as progress:
        rows = read(data, progress, Stopwatch(), reading)
        results: dict[str, Any] = {}
        for path, name in zip([*models, *score_files], names_of([*models, *score_files]), strict=True):
            progress.now(f"Evaluating {path}")
            if len(results) < len(loaded):
                scores = model_scores(loaded[len(results)], rows, data)
            else:
                scores = read_numbers(path, rows.n_rows, "score")
            qid = query_ids(rows)
            results[name] = evaluate(rows.y, scores, qid, metrics, convention=convention, docid=rows.docid)
    return results


def _compare(results: dict[str, Any], metrics: list[str]) -> list[dict[str, Any]]:
    """Compare every other system with the first, metric by metric."""
    from ranksvm.metrics import compare

    (baseline, first), *others = results.items()
    return [
        {"baseline": baseline, "system": name, **dataclasses.asdict(compare(first, result, metric))}
        for metric in metrics
        for name, result in others
        # a metric may be undefined for every query
        if not math.isnan(first.means[metric])
    ]


def _per_query_lines(results: dict[str, Any], metrics: list[str]) -> Iterator[str]:
    yield "\t".join(["system", "query", *metrics])
    for name, result in results.items():
        columns = [result.per_query[metric].tolist() for metric in metrics]
        for query, *values in zip(result.qid.tolist(), *columns, strict=True):
            yield "\t".join([name, str(query), *map(repr, values)])
