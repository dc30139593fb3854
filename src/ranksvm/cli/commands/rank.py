"""``ranksvm rank``: the documents of every query, best first."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ranksvm.cli.files import (
    candidates,
    load_scorer,
    model_scores,
    read,
    read_judgments,
    read_rankings,
    row_labels,
    write_text,
)
from ranksvm.cli.options.paths import titled
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    TEXT_FILE,
    check_run_name,
    json_option,
    qrels_option,
    quiet_option,
    reading_options,
    run_name_option,
)
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import aligned, count, print_json, print_table, tab_separated
from ranksvm.cli.terminal import say

if TYPE_CHECKING:
    import numpy as np

    from ranksvm.datasets.ranking_data import RankingData

# how many documents and queries a table on a screen has by default; other formats have all of them
TABLE_TOP = 10
TABLE_QUERIES = 5


class Ranked(NamedTuple):
    """A document and its rank."""

    rank: int
    docid: str
    score: float
    row: int
    label: float | None


@click.command("rank", short_help="Rank the documents of every query.")
@click.argument("model", type=EXISTING_FILE)
@click.argument("data", type=EXISTING_FILE)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["table", "tsv", "trec"]),
    default=None,
    help="table for reading; tsv; trec for a run file of trec_eval.  [default: table on a terminal, else tsv]",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="K",
    help=f"Documents per query.  [default: all; in a table {TABLE_TOP}]",
)
@click.option(
    "--query",
    "wanted",
    multiple=True,
    metavar="ID",
    help=f"Only this query; may be repeated.  [default: all; in a table {TABLE_QUERIES}]",
)
@click.option(
    "--candidates",
    "run",
    type=EXISTING_FILE,
    metavar="RUN",
    help="Rank only the documents of this TREC run (re-ranking).",
)
@click.option(
    "--depth", type=click.IntRange(min=1), metavar="K", help="The first K documents of a query of RUN.  [default: all]"
)
@qrels_option
@run_name_option
@click.option("-o", "--output", type=TEXT_FILE, metavar="FILE", help="File to write.  [default: stdout]")
@reading_options
@json_option
@quiet_option
@debug_option
def rank_command(
    model: Path,
    data: Path,
    layout: str | None,
    top: int | None,
    wanted: tuple[str, ...],
    run: Path | None,
    depth: int | None,
    qrels: Path | None,
    run_name: str,
    output: Path | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
) -> None:
    """Rank the documents of every query of DATA by MODEL, best first: query, rank, docid, score.

    A document without an id in its comment is named by its row, from 0. Equal scores keep the order of the file; in a
    TREC run they are in descending order of the ids, as trec_eval ranks them. With --qrels the labels are shown.

    \b
    Examples:
      ranksvm rank model.rsvm test.txt --top 3
      ranksvm rank model.rsvm test.txt --format trec -o run.txt
      ranksvm rank model.rsvm test.txt --candidates bm25.run --depth 100 --format trec -o ours.run
    """
    if layout is None:
        # a file or a pipe gets all documents, one per line
        layout = "table" if output is None and sys.stdout.isatty() else "tsv"
    check_run_name(layout == "trec", "--format trec")
    if layout == "table" and output is not None:
        raise click.UsageError("a table is for the screen: use --format tsv or trec with -o.")
    if qrels is not None and layout == "trec" and not as_json:
        raise click.UsageError("--qrels shows labels, which a TREC run does not have: use another --format.")
    if depth is not None and run is None:
        raise click.UsageError("--depth is a number of documents of --candidates: give both.")
    limit = TABLE_QUERIES if layout == "table" and not as_json and not wanted else None
    if layout == "table" and not as_json and top is None:
        top = TABLE_TOP
    with Progress(quiet) as progress:
        ranker = load_scorer(model)
        judged = read_judgments(qrels)
        rows = read(data, progress, Stopwatch(), reading, require_labels=False, qrels=judged, models=[ranker])
        names, scores = row_labels(rows), model_scores(ranker, rows, data)
        ranked = None if run is None else candidates(read_rankings(run), depth, rows, data, progress)
        labels = None if qrels is None else rows.y
        rankings = _wanted(_rankings(rows, names, scores, labels, ranked, layout == "trec"), wanted, data)
        shown = {query: documents[:top] for query, documents in list(rankings.items())[:limit]}
        if output is not None:
            write_text(output, _lines(shown, layout, run_name))
            progress.line(f"Wrote {output}")
    if as_json:
        print_json(
            {
                "command": "rank",
                "model": str(model),
                "data": str(data),
                "queries": [
                    {"query": query, "documents": [document._asdict() for document in documents]}
                    for query, documents in shown.items()
                ],
            }
        )
    elif layout == "table":
        _print_tables(shown, rankings)
    elif output is None:
        write_text(None, _lines(shown, layout, run_name))


def _wanted(rankings: dict[str, list[Ranked]], wanted: tuple[str, ...], data: Path) -> dict[str, list[Ranked]]:
    """The requested rankings; all of them if none is named."""
    for query in wanted:
        if query not in rankings:
            raise click.ClickException(f"{titled(data)} has no query {query!r}.")
    return {query: rankings[query] for query in wanted} if wanted else rankings


def _rankings(
    data: "RankingData",
    docids: list[str],
    scores: "np.ndarray",
    labels: "np.ndarray | None",
    ranked: "np.ndarray | None",
    by_docid: bool,
) -> dict[str, list[Ranked]]:
    """The ranked documents of each query, by query id; equal scores are ordered as in the file or, in TREC runs, by id.

    Queries are in the order in which they appear. ``ranked`` selects rows; queries without such rows are omitted.
    """
    import numpy as np

    from ranksvm.datasets.runs import without_spaces

    # with by_docid, rows are first sorted by descending id; the stable sort by score keeps this order of equal scores
    ids = np.unique([without_spaces(docid) for docid in docids], return_inverse=True)[1] if by_docid else None
    rankings = {}
    for query, all_rows in data.queries:
        rows = all_rows if ranked is None else all_rows[ranked[all_rows]]
        if not len(rows):
            continue
        rows = rows if ids is None else rows[np.argsort(-ids[rows], kind="stable")]
        best_first = rows[np.argsort(-scores[rows], kind="stable")]
        rankings[str(query)] = [
            Ranked(rank, docids[row], float(scores[row]), int(row), None if labels is None else float(labels[row]))
            for rank, row in enumerate(best_first, 1)
        ]
    return rankings


def _print_tables(shown: dict[str, list[Ranked]], rankings: dict[str, list[Ranked]]) -> None:
    rows, labeled = [], _are_labeled(rankings)
    for query, documents in shown.items():
        scores = aligned([document.score for document in documents])
        rows += [
            [query, document.docid, str(document.rank), score, *([f"{document.label:g}"] if labeled else [])]
            for document, score in zip(documents, scores, strict=True)
        ]
        left_out = len(rankings[query]) - len(documents)
        if left_out:
            rows.append([query, f"... {count(left_out)} more", "", "", *([""] if labeled else [])])
    print_table(["query", "document", "rank", "score", *(["label"] if labeled else [])], rows, left=2)
    if len(shown) < len(rankings):
        say(
            f"{count(len(rankings) - len(shown))} more queries: --format tsv prints all, --query ID one of them.",
            err=True,
        )


def _lines(rankings: dict[str, list[Ranked]], layout: str, run_name: str) -> Iterator[str]:
    if layout == "tsv":
        return _tsv(rankings)
    from ranksvm.datasets.runs import check_spellings

    check_spellings(rankings, "query")
    for documents in rankings.values():
        check_spellings((document.docid for document in documents), "document")
    return _trec(rankings, run_name)


def _are_labeled(rankings: dict[str, list[Ranked]]) -> bool:
    return any(document.label is not None for documents in rankings.values() for document in documents)


def _tsv(rankings: dict[str, list[Ranked]]) -> Iterator[str]:
    labeled = _are_labeled(rankings)
    yield tab_separated(["query", "rank", "docid", "score", *(["label"] if labeled else [])])
    for query, documents in rankings.items():
        for document in documents:
            label = [f"{document.label:g}"] if labeled else []
            yield tab_separated([query, str(document.rank), document.docid, repr(document.score), *label])


def _trec(rankings: dict[str, list[Ranked]], run_name: str) -> Iterator[str]:
    from ranksvm.datasets.runs import without_spaces

    for query, documents in rankings.items():
        for document in documents:
            docid = without_spaces(document.docid)
            yield f"{without_spaces(query)} Q0 {docid} {document.rank} {document.score!r} {run_name}"
