"""``ranksvm import``: convert a linear model of another program to a model file."""

from pathlib import Path
from typing import Any

import click

from ranksvm._util.pipeline_steps import steps_of
from ranksvm.cli.options.paths import path_to_open
from ranksvm.cli.options.shared import EXISTING_FILE, OUTPUT_FILE, json_option, quiet_option
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.progress import Progress
from ranksvm.cli.output.tables import counted, print_json

# the formats of ranksvm.estimators.imported_ranker, which must not be imported for --help
FORMATS = ["svm-rank", "liblinear", "libsvm", "xgboost", "sklearn"]


@click.command("import", short_help="Read a linear model of another program.")
@click.argument("source", metavar="FILE", type=EXISTING_FILE)
@click.option("-o", "--output", type=OUTPUT_FILE, required=True, metavar="MODEL", help="Model file to write.")
@click.option(
    "--from",
    "format",
    type=click.Choice(FORMATS),
    help="Format of FILE.  [default: by its first line; sklearn has to be named]",
)
@click.option(
    "--names",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Names of the features. Each line has one name, in order; or each line has a feature (f1, f2, ...) and its "
    "name; or the file is JSON.",
)
@click.option(
    "--features",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of features.  [default: the largest feature that has a weight]",
)
@json_option
@quiet_option
@debug_option
def import_command(
    source: Path,
    output: Path,
    format: str | None,
    names: Path | None,
    features: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Read the linear model in FILE and write it as MODEL, which all other commands accept.

    \b
    svm-rank    model files of SVM-rank and SVM-light
    liblinear   model files of LIBLINEAR: two classes, a regression or a ranking
    libsvm      model files of LIBSVM with a linear kernel: two classes or a
                regression
    xgboost     model files of XGBoost, in JSON, with the booster gblinear
    sklearn     a linear model of scikit-learn, or a Pipeline of scalers and such
                a model, written by joblib or pickle. READING SUCH A FILE RUNS
                WHATEVER CODE IT CONTAINS: name this format only for files that
                you trust.

    \b
    Examples:
      ranksvm import model.dat -o model.rsvm
      ranksvm import ridge.joblib --from sklearn -o model.rsvm
      ranksvm explain model.rsvm test.txt
    """
    from ranksvm import import_model
    from ranksvm.exporting.features import read_names
    from ranksvm.model_files.persistence import save

    options: dict[str, Any] = {"names": None if names is None else read_names(path_to_open(names))}
    with Progress(quiet) as progress:
        progress.now(f"Reading {source}")
        if format == "sklearn":
            if features is not None:
                raise click.UsageError("--features is for model files: a model of scikit-learn knows its features.")
            model = import_model(_unpickled(source), **options)
        else:
            model = import_model(path_to_open(source), format=format or "auto", n_features=features, **options)
        save(model, output)
        ranker = steps_of(model)[-1]
        progress.line(f"Wrote {output}: {ranker.source}, {counted(model.n_features_in_, 'feature')}")
    if as_json:
        print_json(
            {
                "command": "import",
                "file": str(source),
                "model": str(output),
                "source": ranker.source,
                "features": model.n_features_in_,
                "nonzero_weights": int((ranker.coef_ != 0).sum()),
            }
        )


def _unpickled(path: Path) -> Any:
    """An object that joblib or pickle wrote."""
    import joblib

    from ranksvm.exceptions import ModelFileError

    try:
        with open(path_to_open(path), "rb") as file:
            return joblib.load(file)
    except OSError:
        raise
    except Exception as error:  # unpickling may raise anything
        raise ModelFileError(f"{path}: joblib cannot read it ({type(error).__name__}: {error}).") from error
