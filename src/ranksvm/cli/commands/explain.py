"""``ranksvm explain``: the importance of features, and their contributions to differences of scores."""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm._util.pipeline_steps import steps_of
from ranksvm._util.text import compared, feature_label, weight_columns
from ranksvm.cli.features import for_model
from ranksvm.cli.files import load_scorer, read, row_labels
from ranksvm.cli.options.paths import titled
from ranksvm.cli.options.shared import EXISTING_FILE, json_option, quiet_option, reading_options
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import aligned, count, print_bars, print_json
from ranksvm.cli.terminal import say

if TYPE_CHECKING:
    import numpy as np

    from ranksvm.analysis import Explanation

# number of features that a table lists by default
TABLE_TOP = 10
# keys of --json whose values have "features"
_WITH_FEATURES = ("query", "document", "pair")


@click.command("explain", short_help="Explain scores, and show the importance of features.")
@click.argument("model", type=EXISTING_FILE)
@click.argument("data", type=EXISTING_FILE)
@click.option("--query", metavar="ID", help="The query to explain.  [default: the first one with two documents]")
@click.option(
    "--doc",
    metavar="ID",
    help="Document whose score is compared with the mean of its query: its id, or its row, from 0.",
)
@click.option("--against", metavar="ID", help="Document of the same query to compare --doc with.")
@click.option(
    "--top", type=click.IntRange(min=1), metavar="K", help=f"Features to list.  [default: {TABLE_TOP}, with --json all]"
)
@reading_options
@json_option
@quiet_option
@debug_option
def explain_command(
    model: Path,
    data: Path,
    query: str | None,
    doc: str | None,
    against: str | None,
    top: int | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
) -> None:
    """Explain differences of scores in DATA by features, for a linear or additive MODEL.

    A score is a sum over the features, and so is the difference of two scores. Without options: how much each feature
    spreads the scores within queries, and why the first document of the first query ranks above the second. With
    --query: the same for one query. With --doc: why the score of this document differs from the mean of its query. With
    --doc and --against: why one document ranks above the other.

    \b
    Examples:
      ranksvm explain model.rsvm test.txt
      ranksvm explain model.rsvm test.txt --query 18219 --doc GX004-93-7097963
      ranksvm explain model.rsvm test.txt --query 18219 --doc GX004-93-7097963 --against 3
    """
    if against is not None and doc is None:
        raise click.UsageError("--against is the document to compare --doc with: give --doc too.")
    from ranksvm.analysis import explain, feature_importance

    with Progress(quiet) as progress:
        ranker = load_scorer(model)
        rows = read(data, progress, Stopwatch(), reading, require_labels=False, models=[ranker])
        ranker, X, names = for_model(ranker, rows, data)
        progress.now("Explaining")
        explanation = explain(ranker, X, rows.query_ids, feature_names=names)
        n_features = steps_of(ranker)[-1].n_features_in_
        labels = row_labels(rows)
        listed = top if as_json else top or TABLE_TOP
        report: dict[str, Any] = {"command": "explain", "model": str(model), "data": str(data)}
        report.update(importances=None, **dict.fromkeys(_WITH_FEATURES))
        number = _query(explanation, query, doc, labels, data)
        if doc is not None:
            row = _row(explanation, number, doc, labels)
            if against is None:
                report["document"] = _labeled(explanation.document(row).to_dict(listed), labels)
            else:
                other = _row(explanation, number, against, labels)
                report["pair"] = _labeled(explanation.pair(row, other).to_dict(listed), labels)
        else:
            found = explanation.query(explanation.queries.keys[number])
            if query is None:
                importance = feature_importance(ranker, X, rows.query_ids)
                report["importances"] = _importances(explanation, importance, listed)
            else:
                report["query"] = _labeled_documents(found.to_dict(listed), labels)
            if len(found.rows) > 1:
                report["pair"] = _labeled(explanation.pair(*found.rows[:2]).to_dict(listed), labels)
    if as_json:
        found_in = [report["importances"], *(report[key] and report[key]["features"] for key in _WITH_FEATURES)]
        _leave_out_made_up_names(itertools.chain.from_iterable(filter(None, found_in)), names, n_features)
        print_json(report)
    else:
        _show(report)


def _query(explanation: "Explanation", query: str | None, doc: str | None, labels: list[str], data: Path) -> int:
    """Number (from 0) of the query with this id, or of the document, or else of the first query with two documents."""
    queries = explanation.queries
    ids = [str(query_id) for query_id in queries.keys]
    if query is not None:
        if query not in ids:
            raise click.ClickException(f"{titled(data)} has no query {query!r}.")
        return ids.index(query)
    if doc is None:
        return int((queries.sizes > 1).argmax())
    rows = _rows_called(doc, labels, range(len(labels)))
    numbers = sorted({int(queries.numbers()[row]) for row in rows})
    if not rows:
        raise click.ClickException(f"{titled(data)} has no document {doc!r}.")
    if len(numbers) > 1:
        several = ", ".join(ids[number] for number in numbers[:5])
        raise click.UsageError(f"{len(numbers)} queries have a document {doc!r} ({several}): give --query.")
    return numbers[0]


def _row(explanation: "Explanation", number: int, doc: str, labels: list[str]) -> int:
    """The row of a document of a query."""
    query = explanation.queries.keys[number]
    rows = _rows_called(doc, labels, explanation.queries.rows(number).tolist())
    if not rows:
        raise click.ClickException(f"query {str(query)!r} has no document {doc!r}.")
    if len(rows) > 1:
        raise click.UsageError(
            f"query {str(query)!r} has several documents {doc!r}: give the row, one of {', '.join(map(str, rows[:5]))}."
        )
    return rows[0]


def _rows_called(doc: str, labels: list[str], candidates: Iterable[int]) -> list[int]:
    """Rows of the documents with this id; if there are none, the row with this number."""
    candidates = list(candidates)
    called = [row for row in candidates if labels[row] == doc]
    return called or [row for row in candidates if str(row) == doc]


def _importances(explanation: "Explanation", importance: "np.ndarray", top: int | None) -> list[dict[str, Any]]:
    """The most important features over all data."""
    import numpy as np

    total = float(importance.sum())
    names = explanation.feature_names
    return [
        {
            "feature": feature_label(int(column), names),
            "column": int(column),
            "name": None if names is None else str(names[column]),
            "weight": None if explanation.coef is None else float(explanation.coef[column]),
            "importance": float(importance[column]),
            "share": float(importance[column] / total) if total else 0.0,
        }
        for column in np.argsort(-importance, kind="stable")[:top]
    ]


def _leave_out_made_up_names(features: Iterable[dict[str, Any]], names: object, n_features: int) -> None:
    """Set to None, in place, names of features that have none, and names and columns of functions of two features."""
    for item in features:
        if item["column"] >= n_features:
            item["column"] = item["name"] = None
        elif names is None:
            item["name"] = None


def _labeled(difference: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    other = difference["other_row"]
    return {"docid": labels[difference["row"]], "other_docid": None if other is None else labels[other], **difference}


def _labeled_documents(query: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    return {**query, "documents": [{"docid": labels[item["row"]], **item} for item in query["documents"]]}


def _show(report: dict[str, Any]) -> None:
    if report["importances"] is not None:
        _show_importances(
            report["importances"], f"{report['data']}: how much each feature spreads the scores within queries"
        )
        say()
    if report["query"] is not None:
        found = report["query"]
        documents = f"Query {found['query']}, {count(found['n_documents'])} documents"
        title = f"{documents}: how much each feature spreads their scores"
        _show_importances(found["features"], title)
        say()
    for difference in (report["document"], report["pair"]):
        if difference is not None:
            _show_difference(difference)


def _show_importances(features: list[dict[str, Any]], title: str) -> None:
    numbers = ["weight", "importance"] if _have_weights(features) else ["importance"]
    importances = [item["importance"] for item in features]
    texts = [aligned(importances)]
    if len(numbers) > 1:
        texts = weight_columns(importances, [item["weight"] for item in features]) + texts
    rows = list(zip((item["feature"] for item in features), *texts, strict=True))
    print_bars(["feature", *numbers], rows, importances, title)


def _show_difference(found: dict[str, Any]) -> None:
    scores = aligned([found["score"], found["other_score"]])
    title = f"Query {found['query']}: why {found['docid']} (rank {found['rank']} of {count(found['n_documents'])}) "
    if found["other_row"] is None:
        title += f"differs from the mean: score {scores[0]}, mean of the documents {scores[1]}"
    else:
        ranks = "above" if found["rank"] < found["other_rank"] else "below"
        title += f"ranks {ranks} {found['other_docid']} (rank {found['other_rank']}): score {' against '.join(scores)}"
    features = found["features"]
    left = found["n_features"] - len(features)
    contributions = [item["contribution"] for item in features]
    sums = [found["rest"], found["difference"]]
    *signed, rest, total = (f"+{text}" if value > 0 else text for value, text in _signed([*contributions, *sums]))
    weights = ["weight"] if _have_weights(features) else []
    rows = [
        (
            item["feature"],
            *(f"{item[weight]:.4g}" for weight in weights),
            *compared(item["value"], item["other_value"]),
            contribution,
        )
        for item, contribution in zip(features, signed, strict=True)
    ]
    empty = [""] * (len(weights) + 2)
    bars: list[float | None] = list(contributions)
    if left > 0:
        rows.append((f"{count(left)} more", *empty, rest))
        bars.append(found["rest"])
    rows.append(("all", *empty, total))
    bars.append(None)
    other = "mean" if found["other_row"] is None else "other"
    print_bars(["feature", *weights, "value", other, "contribution"], rows, bars, title)


def _have_weights(features: list[dict[str, Any]]) -> bool:
    return all(item["weight"] is not None for item in features)


def _signed(values: list[float]) -> list[tuple[float, str]]:
    return list(zip(values, aligned(values), strict=True))
