"""``ranksvm demo``: the main task from end to end, run by the real commands on generated data."""

import contextlib
import io
import json
import shlex
from pathlib import Path
from typing import Any

import click

from ranksvm.cli.options.shared import json_option, n_jobs_option, quiet_option
from ranksvm.cli.output.errors import debug_option, is_debugging
from ranksvm.cli.output.tables import print_json
from ranksvm.cli.terminal import say

N_QUERIES = 3_000
PARTS = {"train": 0.6, "vali": 0.2, "test": 0.2}
RESULTS = ("best.json", "model.rsvm", "run.txt")


@click.command("demo", short_help="Generate data, and run a complete example.")
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default="demo-output",
    show_default=True,
    metavar="DIR",
    help="Folder for data, model and rankings; created if absent. No file in it is overwritten.",
)
@click.option(
    "--queries",
    type=click.IntRange(min=20),
    default=N_QUERIES,
    show_default=True,
    metavar="N",
    help="Number of queries to generate.",
)
@n_jobs_option
@json_option
@quiet_option
@debug_option
@click.pass_context
def demo_command(
    ctx: click.Context, output_dir: Path, queries: int, n_jobs: int | None, as_json: bool, quiet: bool
) -> None:
    """Generate ranking data with five grades, choose loss and C on validation data, train, evaluate and rank.

    Every step is a separate command, which is printed so that it can be copied.

    \b
    Examples:
      ranksvm demo
      ranksvm demo --output-dir small --queries 100
    """
    for name in (*(f"{part}.txt" for part in PARTS), *RESULTS):
        if (output_dir / name).exists():
            raise click.UsageError(f"{output_dir / name} exists: name another folder with --output-dir.")
    output_dir.mkdir(parents=True, exist_ok=True)
    files = _make_data(output_dir, queries)
    if not quiet:
        say(f"Wrote {queries:,} queries with five grades to {', '.join(map(str, files.values()))}", err=True)
    train, vali, test = (str(files[part]) for part in PARTS)
    best, model, run = (str(output_dir / name) for name in RESULTS)
    threads = [] if n_jobs is None else ["--n-jobs", str(n_jobs)]
    losses = ["--loss", "squared_hinge,hinge", "--C-range", "2^-21:2^1:2"]
    commands = [
        ["tune", train, "--valid", vali, *losses, "--save-choice", best, *threads],
        ["train", train, "--valid", vali, "--test", test, "--settings", best, "-o", model, *threads],
        ["evaluate", test, "--model", model, "--metrics", "ndcg@1,ndcg@5,ndcg@10,map,err,pairwise_accuracy"],
        ["rank", model, test, "--format", "trec", "-o", run],
        ["rank", model, test, "--format", "table", "--top", "5"],
    ]
    results = [_run(ctx, arguments, as_json, quiet) for arguments in commands]
    if as_json:
        print_json({"command": "demo", "output_dir": str(output_dir), "runs": results})
    elif not quiet:
        say(f"\nData, model and TREC run are in {output_dir}\n\n{_next_steps(model, test)}", err=True)


def _next_steps(model: str, test: str) -> str:
    """Commands to try next, first on the model of the demo, then on the user's own data."""
    steps = [
        (["explain", model, test], "why the documents of a query are ranked as they are"),
        (["export", model, "--to", "python", "-o", "model.py"], "the model as a function without imports"),
        (["info", "YOUR_DATA.txt"], "what is in data of your own: LETOR text, CSV or Parquet"),
        (["tune", "YOUR_DATA.txt", "-o", "model.rsvm"], "a model of them, its settings chosen by folds of queries"),
        (["--help"], "all commands; COMMAND --help has examples"),
    ]
    commands = [shlex.join(["ranksvm", *arguments]) for arguments, _ in steps]
    width = max(map(len, commands))
    lines = [f"  {command:{width}}  {what}" for command, (_, what) in zip(commands, steps, strict=True)]
    return "\n".join(["Next:", *lines])


def _make_data(folder: Path, n_queries: int) -> dict[str, Path]:
    """Write training, validation and test data, which share no query, as LETOR text; return their paths."""
    import numpy as np

    from ranksvm.datasets.generators import make_ranking
    from ranksvm.datasets.letor.writer import write_letor

    data = make_ranking(n_queries, (20, 60), 25, n_levels=5, noise=1.0, random_state=0)
    # Features have different scales, as real ones do: with equal scales nearly every C is good.
    data.X *= (10.0 ** np.random.default_rng(0).uniform(-1, 1, data.n_features)).astype(data.X.dtype)
    pointers = data.queries.pointers
    data.docid = np.array([f"q{query}-d{i}" for query, size in enumerate(data.queries.sizes, 1) for i in range(size)])
    files, first, share = {}, 0, 0.0
    for part, size in PARTS.items():
        share += size
        last = round(share * n_queries)
        files[part] = folder / f"{part}.txt"
        write_letor(files[part], data.select(slice(pointers[first], pointers[last])))
        first = last
    return files


def _run(ctx: click.Context, arguments: list[str], as_json: bool, quiet: bool) -> dict[str, Any]:
    """Run one command as if it had been typed; with ``as_json`` return its document."""
    program = ctx.find_root().command
    typed = [*arguments, "--json"] if as_json else arguments
    if not quiet:
        say(f"\n$ ranksvm {shlex.join(typed)}", err=True, bold=True)
    hidden = ["--quiet"] * quiet + ["--debug"] * is_debugging(ctx)
    captured = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(captured) if as_json else contextlib.nullcontext():
        code = program.main([*typed, *hidden], prog_name="ranksvm", standalone_mode=False)
    if code:
        ctx.exit(code)
    return {"arguments": typed, "result": json.loads(captured.buffer.getvalue())} if as_json else {}
