"""``ranksvm convert``: a data file in another format."""

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm._util.special_files import is_special
from ranksvm.cli.files import read, read_judgments, to_cache
from ranksvm.cli.options.models import texts_option
from ranksvm.cli.options.paths import STDIN, titled
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    OUTPUT_FILE,
    json_option,
    qrels_option,
    quiet_option,
    reading_options,
)
from ranksvm.cli.output.errors import debug_option, warn
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import print_json

if TYPE_CHECKING:
    from ranksvm.datasets.cache.conversion import ConvertedData
    from ranksvm.datasets.runs import Qrels

# suffixes of the formats that hold the names of features
_NAMING = (".rsd", ".parquet", ".pq", ".csv", ".tsv")


@click.command("convert", short_help="Convert a data file to another format.")
@click.argument("source", metavar="IN", type=EXISTING_FILE)
@click.argument("target", metavar="OUT", type=OUTPUT_FILE)
@qrels_option
@reading_options
@texts_option
@click.option(
    "--escape-formulas",
    is_flag=True,
    help="If OUT is CSV or TSV: put an apostrophe before names and ids that a spreadsheet would take for a formula "
    "(=, +, -, @).",
)
@json_option
@quiet_option
@debug_option
def convert_command(
    source: Path,
    target: Path,
    qrels: Path | None,
    reading: dict[str, Any],
    escape_formulas: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Convert the data file IN to OUT; the file name extension of OUT selects the format.

    IN may be larger than memory: it is read a part at a time.

    \b
    .rsd                     binary cache, which is memory-mapped instead of read
    .parquet, .pq            Parquet (needs pip install "ranksvm[parquet]")
    .csv, .tsv               CSV with column names (needs the same)
    .qrels                   TREC judgments: queries, documents and labels only
    .txt, .letor, .svm, ...  LETOR text; .gz, .bz2, .xz or .zst compress it
    -                        LETOR text on standard output

    \b
    Examples:
      ranksvm convert train.txt.gz train.rsd
      ranksvm convert features.parquet --qrels qrels.txt train.rsd
      ranksvm convert products.csv train.rsd --categorical brand,color
      ranksvm convert test.txt test.qrels
    """
    _try(target)
    suffixes = [suffix.lower() for suffix in target.suffixes[-2:]]
    if escape_formulas and not {".csv", ".tsv"} & set(suffixes):
        raise click.UsageError(f"--escape-formulas is for CSV and TSV, but {target} is neither.")
    watch = Stopwatch()
    judgments = read_judgments(qrels)
    with Progress(quiet) as progress:
        if target.suffix.lower() == ".rsd" and not is_special(target):
            converted = to_cache(source, target, progress, watch, reading, qrels=judgments)
        else:
            converted = _through_memory(source, target, progress, watch, reading, judgments, escape_formulas)
        if converted.feature_names is not None and not {*_NAMING, ".qrels"} & set(suffixes):
            warn(f"{target} is text, which has no feature names: the names in {titled(source)} are lost.")
        size = None if is_special(target) else target.stat().st_size
        amount = "" if size is None else f"{size:,} bytes, "
        progress.line(f"Wrote {target}: {amount}{watch.seconds['writing']:.2f} s")
    if as_json:
        print_json(
            {
                "command": "convert",
                "source": str(source),
                "target": str(target),
                "rows": converted.n_rows,
                "queries": converted.n_queries,
                "features": converted.n_features,
                "bytes": size,
                "seconds": watch.seconds,
            }
        )


def _through_memory(
    source: Path,
    target: Path,
    progress: Progress,
    watch: Stopwatch,
    reading: dict[str, Any],
    qrels: "Qrels | None",
    escape_formulas: bool,
) -> "ConvertedData":
    """Convert data that are read into memory or, if they may be too large, mapped from a temporary cache."""
    from ranksvm._util.atomic_files import temporary_beside, temporary_file
    from ranksvm._util.checks import is_sparse
    from ranksvm._util.memory import memory_bytes
    from ranksvm.datasets.cache.conversion import ConvertedData, memory_to_read
    from ranksvm.datasets.files import write_data
    from ranksvm.datasets.ranking_data import RankingData

    with contextlib.ExitStack() as stack:
        if source != STDIN and memory_to_read(source) > memory_bytes(None):
            cache = Path(stack.enter_context(temporary_file() if is_special(target) else temporary_beside(target)))
            to_cache(source, cache, progress, watch, reading, qrels=qrels)
            data = RankingData.load(cache, verify=False)
        else:
            data = read(source, progress, watch, reading, qrels=qrels)
        progress.now(f"Writing {target}")
        with watch("writing"):
            write_data(data, target, escape_formulas=escape_formulas)
        counts = data.n_rows, data.queries.n_queries, data.n_features
        return ConvertedData(*counts, is_sparse(data.X), data.qid is not None, data.feature_names)


def _try(target: Path) -> None:
    """Write one row to a temporary file of this name, to find a bad extension or missing package before a long read."""
    import numpy as np

    from ranksvm.datasets.files import write_data
    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.exceptions import MissingDependencyError, OptionError

    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / target.name
        try:
            write_data(RankingData(np.zeros((1, 1)), np.zeros(1)), trial)
        except (OptionError, MissingDependencyError) as error:
            raise type(error)(str(error).replace(str(trial), str(target))) from None
