"""``ranksvm convert``: a data file in another format."""

import tempfile
from pathlib import Path
from typing import Any

import click

from ranksvm._special_files import is_special
from ranksvm.cli.errors import debug_option, warn
from ranksvm.cli.files import read, read_judgements
from ranksvm.cli.options import EXISTING_FILE, OUTPUT_FILE, json_option, qrels_option, quiet_option, reading_options
from ranksvm.cli.paths import titled
from ranksvm.cli.progress import Progress, Stopwatch
from ranksvm.cli.tables import print_json

# suffixes of the formats that hold the names of features
_NAMING = (".rsd", ".parquet", ".pq", ".csv", ".tsv")


@click.command("convert", short_help="Convert a data file to another format.")
@click.argument("source", metavar="IN", type=EXISTING_FILE)
@click.argument("target", metavar="OUT", type=OUTPUT_FILE)
@qrels_option
@reading_options
@json_option
@quiet_option
@debug_option
def convert_command(
    source: Path, target: Path, qrels: Path | None, reading: dict[str, Any], as_json: bool, quiet: bool
) -> None:
    """Convert the data file IN to OUT; the file name extension of OUT selects the format.

    \b
    .rsd                     binary cache, which is memory-mapped instead of read
    .parquet, .pq            Parquet (needs pip install "ranksvm[parquet]")
    .csv, .tsv               CSV with column names (needs pip install "ranksvm[parquet]")
    .qrels                   relevance judgements of TREC: queries, documents and labels only
    .txt, .letor, .svm, ...  LETOR text, with .gz, .bz2, .xz or .zst compressed
    -                        LETOR text on standard output

    \b
    ranksvm convert train.txt.gz train.rsd
    ranksvm convert features.parquet --qrels qrels.txt train.rsd
    ranksvm convert test.txt test.qrels
    """
    from ranksvm.data import write_data

    _try(target)
    watch = Stopwatch()
    with Progress(quiet) as progress:
        data = read(source, progress, watch, reading, qrels=read_judgements(qrels))
        progress.now(f"Writing {target}")
        with watch("writing"):
            write_data(data, target)
        suffixes = [suffix.lower() for suffix in target.suffixes[-2:]]
        if data.feature_names is not None and not {*_NAMING, ".qrels"} & set(suffixes):
            warn(f"{target} is text, which has no feature names: those of {titled(source)} are lost.")
        size = None if is_special(target) else target.stat().st_size
        amount = "" if size is None else f"{size:,} bytes, "
        progress.line(f"Wrote {target}: {amount}{watch.seconds['writing']:.2f} s")
    if as_json:
        print_json(
            {
                "command": "convert",
                "source": str(source),
                "target": str(target),
                "rows": data.n_rows,
                "queries": data.queries.n_queries,
                "features": data.n_features,
                "bytes": size,
                "seconds": watch.seconds,
            }
        )


def _try(target: Path) -> None:
    """Write one row to a temporary file of this name, to find a bad extension or missing package before a long read."""
    import numpy as np

    from ranksvm.data import RankingData, write_data
    from ranksvm.exceptions import MissingDependencyError, OptionError

    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / target.name
        try:
            write_data(RankingData(np.zeros((1, 1)), np.zeros(1)), trial)
        except (OptionError, MissingDependencyError) as error:
            raise type(error)(str(error).replace(str(trial), str(target))) from None
