"""``ranksvm export``: a model in the format of a search engine, a runtime or a programming language."""

from pathlib import Path
from typing import Any

import click

from ranksvm.cli.features import for_model
from ranksvm.cli.files import load_scorer, read
from ranksvm.cli.options.paths import path_to_open
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    OUTPUT_FILE,
    check_reading_options,
    json_option,
    quiet_option,
    reading_options,
)
from ranksvm.cli.output.errors import debug_option, warn
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import counted, print_json
from ranksvm.cli.terminal import print_data
from ranksvm.exporting.registry import DESCRIPTIONS, FORMATS

_NAMES = {", ".join(formats): description for description, formats in DESCRIPTIONS.items()}
_HELP = """Write MODEL in the format of another program, with its scaler.

\b
{formats}

Every file says how to install it and has a self-test: three documents and their scores.

\b
Examples:
  ranksvm export model.rsvm --to solr --names names.tsv -o model.json
  ranksvm export model.rsvm --to elasticsearch --data train.txt --non-negative -o model.json
  ranksvm export model.rsvm --to c -o ranker.c
""".format(formats="\n".join(f"{names}\n  {description}" for names, description in _NAMES.items()))


@click.command(
    "export", short_help="Write a model for a search engine, a runtime or a programming language.", help=_HELP
)
@click.argument("model", type=EXISTING_FILE)
@click.option(
    "--to",
    type=click.Choice(list(FORMATS)),
    metavar="FORMAT",
    required=True,
    help="The format to write: one of those above.",
)
@click.option("-o", "--output", type=OUTPUT_FILE, metavar="FILE", help="File to write.  [default: stdout]")
@click.option(
    "--names",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Names of the features in the engine. Each line has a name in the model and a name in the engine; or each "
    "line has one name, for all features in order; or the file is JSON.",
)
@click.option("--name", metavar="NAME", help="Name of the model.  [default: the name of the file]")
@click.option(
    "--store",
    metavar="NAME",
    help="Feature store of Solr [_DEFAULT_], feature set of Elasticsearch and OpenSearch [features], schema of Vespa.",
)
@click.option(
    "--table",
    default="documents",
    show_default=True,
    metavar="NAME",
    help="Table of documents, in SQL: a name, or a schema, a dot and a name.",
)
@click.option(
    "--query-column",
    default="qid",
    show_default=True,
    metavar="NAME",
    help="Column of query ids in the table of documents, in SQL.",
)
@click.option(
    "--data",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Data file: the documents of the self-test, and ranges of the features for --non-negative.",
)
@click.option(
    "--non-negative",
    is_flag=True,
    help="Shift the scores so that none is negative, because Lucene refuses negative ones; needs --data, or a "
    "MinMaxScaler.",
)
@click.option(
    "--templates",
    type=EXISTING_FILE,
    metavar="FILE",
    help="The query that computes each feature, for elasticsearch and opensearch: a JSON object of names and queries, "
    "or a feature set. The output then has the feature set that the model needs.",
)
@reading_options
@json_option
@quiet_option
@debug_option
def export_command(
    model: Path,
    to: str,
    output: Path | None,
    names: Path | None,
    data: Path | None,
    templates: Path | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Write a model in the format of another program."""
    import numpy as np

    from ranksvm.exporting import export
    from ranksvm.exporting.features import read_names, read_templates

    check_reading_options(data is not None)
    if output is None and to == "onnx" and not as_json:
        raise click.UsageError("an ONNX model is not text: give -o FILE.")
    with Progress(quiet) as progress:
        ranker = load_scorer(model)
        if names is not None:
            options["names"] = read_names(path_to_open(names))
        if templates is not None:
            options["templates"] = read_templates(path_to_open(templates))
        if data is not None:
            rows = read(data, progress, Stopwatch(), reading, require_labels=False, models=[ranker])
            _, options["X"], _ = for_model(ranker, rows, data)
            options["qid"] = rows.query_ids
        options["name"] = options["name"] or (None if output is not None else model.name.split(".", 1)[0])
        found = export(ranker, output, to=to, **options)
        for note in found.notes:
            warn(note)
        if output is not None:
            progress.line(f"Wrote {output}: {to}, {counted(len(found.features), 'feature')}")
    if as_json:
        print_json(
            {
                "command": "export",
                "model": str(model),
                "to": to,
                "output": None if output is None else str(output),
                "features": found.features,
                "notes": found.notes,
                "test": found.test.by_name(found.features, np.arange(len(found.features))),
                "content": found.text if output is None and to != "onnx" else None,
            }
        )
    elif output is None:
        print_data(found.text.removesuffix("\n"))
