"""``ranksvm analyze``: the effective dimension of the dual variables, or low-rank matrices, of each query."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm._util.pipeline_steps import steps_of
from ranksvm.cli.features import for_model, names_in
from ranksvm.cli.files import load_model, names_of, read, read_judgments, write_text
from ranksvm.cli.options.paths import titled
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    OUTPUT_FILE,
    TEXT_FILE,
    Name,
    Shares,
    json_option,
    list_option,
    n_jobs_option,
    qrels_option,
    quiet_option,
    reading_options,
)
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.plot import check_plot
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import count, counted, number, print_json, print_table, queries, tab_separated
from ranksvm.cli.terminal import say

if TYPE_CHECKING:
    from ranksvm.analysis import DualSpectra
    from ranksvm.cli.features import Model
    from ranksvm.datasets.ranking_data import RankingData

# number of queries that the table lists by default
LISTED = 10
# number of bins of the histograms
BINS = 10
# The kinds of matrices that a model has for each query, in words.
MATRICES = {"alpha": "dual variables", "low-rank": "matrices of low rank"}


@click.command("analyze", short_help="Show how many dimensions the dual variables of a model have.")
@click.argument("models", type=EXISTING_FILE, nargs=-1, required=True, metavar="MODEL...")
@click.argument("data", type=EXISTING_FILE)
@list_option(
    "--energy",
    type=Shares(),
    default="0.9,1",
    metavar="T,T,...",
    help="Shares of the energy (the sum of squares) to retain; 1 gives the rank.",
)
@click.option(
    "--matrices",
    type=Name([*MATRICES, "both"]),
    default="alpha",
    show_default=True,
    help="What to analyze: dual variables, the low-rank matrices of low-rank models, or both.",
)
@click.option(
    "--query",
    "chosen",
    metavar="ID",
    multiple=True,
    help=f"List this query; may be repeated.  [default: the {LISTED} with the most pairs]",
)
@click.option(
    "-o", "--output", type=TEXT_FILE, metavar="FILE", help="Write the numbers of every query (tab-separated)."
)
@click.option("--spectra", "values", type=TEXT_FILE, metavar="FILE", help="Write all singular values (tab-separated).")
@click.option("--plot", type=OUTPUT_FILE, metavar="FILE", help="Draw histograms and ranks (.png, .svg, .pdf).")
@n_jobs_option
@qrels_option
@reading_options
@json_option
@quiet_option
@debug_option
def analyze_command(
    models: tuple[Path, ...],
    data: Path,
    energy: list[float],
    matrices: str,
    chosen: tuple[str, ...],
    output: Path | None,
    values: Path | None,
    plot: Path | None,
    n_jobs: int | None,
    qrels: Path | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
) -> None:
    """Show how many dimensions the dual variables of MODEL have in each query of DATA, its training data.

    The dual variables of a query form a matrix, with a row for each preferred document and a column for each other one.
    For each share T of the energy of the matrix (the sum of squares), the command shows how many singular values retain
    this share, and the ratio of this number to the number of dimensions. At T = 1 the number is the rank. Several
    models are shown side by side.

    A low-rank model has a second matrix for each query, whose rank is low: the products of the factors of a factorized
    model, or the low-rank matrix that approximates the dual variables of a regularized one. --matrices low-rank
    compares these matrices with the dual variables of other models.

    \b
    Examples:
      ranksvm analyze model.rsvm train.txt
      ranksvm analyze factorized.rsvm regularized.rsvm plain.rsvm train.txt --matrices low-rank
      ranksvm analyze plain.rsvm other.rsvm train.txt --energy 0.9,0.99,1 -o ranks.tsv --plot ranks.png
    """
    if plot is not None:
        check_plot(plot)
    watch = Stopwatch()
    names = names_of(list(models))
    with Progress(quiet) as progress:
        loaded = [load_model(path) for path in models]
        wanted = _wanted(loaded, matrices)
        rows = read(data, progress, watch, reading, qrels=read_judgments(qrels), models=loaded)
        spectra, described = {}, []
        for path, model_name, model, kinds in zip(models, names, loaded, wanted, strict=True):
            progress.now(f"Analyzing {path}")
            for kind in kinds:
                name = model_name if kind == "alpha" else f"{model_name} (low rank)"
                described.append({"name": name, "model": str(path), "matrices": kind})
                with watch("analysing"):
                    spectra[name] = _spectra(model, kind, path, rows, data, energy, n_jobs)
        listed = _listed(next(iter(spectra.values())), chosen, data)
        if output is not None:
            write_text(output, _table_lines(spectra))
        if values is not None:
            write_text(values, _value_lines(spectra))
        if plot is not None:
            _draw(spectra, plot)
        for written in (output, values, plot):
            if written is not None:
                progress.line(f"Wrote {written}")
    if as_json:
        print_json(
            {
                "command": "analyze",
                "data": str(data),
                "models": [
                    {**words, **of_model.to_dict(BINS)}
                    for words, of_model in zip(described, spectra.values(), strict=True)
                ],
                "output": output,
                "spectra": values,
                "plot": plot,
                "seconds": watch.seconds,
            }
        )
    else:
        of_what = {MATRICES[words["matrices"]] for words in described}
        _show(f"{titled(data)}: {' and '.join(sorted(of_what))}", spectra, listed)


def _wanted(models: list[Any], matrices: str) -> list[list[str]]:
    """The kinds of matrices to analyze for each model: the requested ones, or its dual variables if it has no other."""
    has_low_rank = [hasattr(steps_of(model)[-1], "low_rank_coef") for model in models]
    if matrices != "alpha" and not any(has_low_rank):
        raise click.UsageError(
            f"--matrices {matrices}: none of the models has low rank; train --low-rank trains such models."
        )
    of_low_rank = list(MATRICES) if matrices == "both" else [matrices]
    return [of_low_rank if low_rank else ["alpha"] for low_rank in has_low_rank]


def _spectra(
    model: "Model", kind: str, path: Path, rows: "RankingData", data: Path, energy: list[float], n_jobs: int | None
) -> "DualSpectra":
    """The spectra of a model on ``rows``, its training data."""
    from ranksvm.analysis import dual_coef, dual_spectra, low_rank_coef
    from ranksvm.exceptions import DataError

    known = model.n_features_in_
    if rows.n_features > known and names_in(model) is None:
        raise click.ClickException(
            f"{titled(data)} has {counted(rows.n_features, 'feature')}, but {path} was trained on {count(known)}: give "
            "the training data of the model."
        )
    coef = dual_coef if kind == "alpha" else low_rank_coef
    model, X, _ = for_model(model, rows, data)
    try:
        dual = coef(model, X, rows.y, rows.query_ids)
    except DataError as error:
        raise click.ClickException(f"{path} with {titled(data)}: {error}") from error
    return dual_spectra(dual, energy=energy, n_jobs=n_jobs)


def _listed(spectra: "DualSpectra", chosen: tuple[str, ...], data: Path) -> list[Any]:
    """Ids of the queries to list: the requested ones, or else the largest."""
    import numpy as np

    ids = spectra.ids.tolist()
    if not chosen:
        return [ids[place] for place in np.argsort(-spectra.n_pairs, kind="stable")[:LISTED]]
    by_text = {str(query): query for query in ids}
    for query in chosen:
        if query not in by_text:
            raise click.ClickException(f"{titled(data)} has no query {query!r}.")
    return [by_text[query] for query in chosen]


def _table_lines(spectra: dict[str, Any]) -> Iterator[str]:
    for place, (name, of_model) in enumerate(spectra.items()):
        table = of_model.table()
        if place == 0:
            yield tab_separated(["model", *table.dtype.names])
        for query, *numbers in table.tolist():
            yield tab_separated([name, str(query), *map(repr, numbers)])


def _value_lines(spectra: dict[str, Any]) -> Iterator[str]:
    yield tab_separated(["model", "query", "number", "singular_value"])
    for name, of_model in spectra.items():
        for query, found in zip(of_model.ids.tolist(), of_model.singular_values, strict=True):
            for place, value in enumerate(found.tolist(), 1):
                yield tab_separated([name, str(query), str(place), repr(value)])


def _draw(spectra: dict[str, Any], path: Path) -> None:
    """Plot the histograms in one row, and below them each query's dimensions against its documents and its pairs."""
    from ranksvm._util.atomic_files import atomic_write
    from ranksvm.plotting import DimensionHistogramDisplay, DimensionsDisplay
    from ranksvm.plotting.figures import figure_in_memory

    drawn = spectra if len(spectra) > 1 else next(iter(spectra.values()))
    energy = next(iter(spectra.values())).energy
    figure = figure_in_memory(figsize=(max(9.6, 3.6 * len(energy)), 8.0), layout="constrained")
    above, below = figure.subfigures(2, 1)
    DimensionHistogramDisplay.from_spectra(drawn, bins=BINS, axes=above.subplots(1, len(energy), sharey=True))
    for ax, against in zip(below.subplots(1, 2, sharey=True), ("documents", "pairs"), strict=True):
        DimensionsDisplay.from_spectra(drawn, against=against, ax=ax)
        ax.get_legend().remove()
        ax.label_outer()
    # one legend for both
    named = ax.get_legend_handles_labels()
    below.legend(*named, loc="outside upper center", ncols=3, frameon=False, fontsize="small", handletextpad=0.3)
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix.lower().lstrip("."), dpi=150)


def _show(title: str, spectra: dict[str, Any], listed: list[Any]) -> None:
    reports = {name: of_model.to_dict(BINS) for name, of_model in spectra.items()}
    first = next(iter(reports.values()))
    title = f"{title} of {queries(first['n_queries'])}, {counted(first['n_pairs'], 'pair')}"
    rows = [
        [
            name,
            _percent(found["t"]),
            number(found["median_dimensions"], 1),
            _share(found["median_ratio"]),
            _share(found["mean_ratio"]),
            _share(found["share_below_0.3"]),
            count(report["n_counted"]),
        ]
        for name, report in reports.items()
        for found in report["energy"]
    ]
    columns = ["model", "energy", "dimensions (median)", "of all (median)", "(mean)", "queries below 30 %", "queries"]
    print_table(columns, rows, title=title)
    say()
    series = [
        (name if len(reports) > 1 else "", found) for name, report in reports.items() for found in report["energy"]
    ]
    headings = [f"{name} {_percent(found['t'])}".strip() for name, found in series]
    counts = zip(*(found["histogram"]["counts"] for _, found in series), strict=True)
    rows = [[f"{100 * i // BINS} to {100 * (i + 1) // BINS} %", *map(count, bin_)] for i, bin_ in enumerate(counts)]
    print_table(["share of the dimensions", *headings], rows, title="Queries by the share of dimensions needed")
    say()
    _show_queries(spectra, listed, headings)


def _show_queries(spectra: dict[str, Any], listed: list[Any], headings: list[str]) -> None:
    from ranksvm.analysis import compare_ranks

    first = next(iter(spectra.values()))
    table = first.table(listed)
    rows = [
        [str(query), count(documents), count(pairs), f"{preferred} x {other}"]
        for query, documents, pairs, preferred, other in table[list(table.dtype.names[:5])].tolist()
    ]
    for name, of_model in spectra.items():
        for t in of_model.energy:
            for row, dimensions in zip(rows, compare_ranks({name: of_model}, t=t, queries=listed)[name], strict=True):
                row.append(count(dimensions))
    print_table(["query", "documents", "pairs", "block", *headings], rows, title="Dimensions of single queries")


def _percent(t: float) -> str:
    return f"{100 * t:g} %"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
