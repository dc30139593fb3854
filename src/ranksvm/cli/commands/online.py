"""``ranksvm online``: rank each query of a stream, then learn from it."""

import contextlib
import itertools
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from ranksvm._util.special_files import is_special
from ranksvm.cli.files import Judged, read_judgments
from ranksvm.cli.online_run import CtrlC, OnlineRun, parts_of
from ranksvm.cli.options.online import learner_options, make_learner
from ranksvm.cli.options.paths import STDIN, titled
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    OUTPUT_FILE,
    check_run_name,
    convention_option,
    json_option,
    metrics_option,
    qrels_option,
    quiet_option,
    reading_options,
    run_name_option,
)
from ranksvm.cli.output.errors import EXIT_INTERRUPTED, debug_option, is_debugging
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import count, counted, number, print_facts, print_json, print_table, queries, seconds
from ranksvm.cli.terminal import say

if TYPE_CHECKING:
    import numpy as np

    from ranksvm.datasets.ranking_data import RankingData

DEFAULT_MODEL = Path("online.rsvm")
# number of queries from one progress line to the next, if there are no checkpoints
EVERY = 1000
# Number of queries read at a time from a file: a call of the reader takes as long as learning from a few queries.
# Queries from a pipe are read one by one.
FILE_BATCH = 64
# LETOR text whose number of features and first feature number (0 or 1) are known is read as dense data up to this
# number of features, and as sparse data above it.
DENSE_UP_TO = 1024
# seconds between two changes of the live line
LIVE = 0.1


class _Every(click.Tuple):
    """The value ``every N`` of ``--checkpoint``."""

    def __init__(self) -> None:
        super().__init__([click.STRING, click.IntRange(min=1)])

    def convert(
        self, value: Sequence[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        if value[0] != "every":
            self.fail(f"write --checkpoint every N, found {' '.join(value)!r}.", param, ctx)
        return super().convert(value, param, ctx)


class _OnlineCommand(click.Command):
    """The command, which also accepts ``--checkpoint N`` and ``--checkpoint=N`` for ``--checkpoint every N``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = [word for each in args for word in self._split(each)]
        words = [args[:1]]
        for option, value in itertools.pairwise(args):
            words.append(["every", value] if option == "--checkpoint" and value.isdecimal() else [value])
        return super().parse_args(ctx, list(itertools.chain.from_iterable(words)))

    @staticmethod
    def _split(word: str) -> list[str]:
        option, equals, value = word.partition("=")
        return [option, value] if option == "--checkpoint" and equals else [word]


@click.command("online", cls=_OnlineCommand, short_help="Learn from a stream, query by query.")
@click.argument("train", type=EXISTING_FILE)
@learner_options(
    levels="default: the levels of MODEL with --resume, else the labels in TRAIN, which is then read twice"
)
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    metavar="MODEL",
    help=f"Model file to write.  [default with --checkpoint or --resume: {DEFAULT_MODEL}]",
)
@click.option(
    "--checkpoint",
    type=_Every(),
    nargs=2,
    metavar="every N",
    help="Write MODEL after every N queries, and at the end. (--checkpoint N is the same.)",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue from MODEL if it exists; skip the queries of TRAIN that it has learned from.",
)
@click.option(
    "--every",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Queries between two lines of progress.  [default: as --checkpoint, or {EVERY}]",
)
@click.option(
    "--run",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="TREC run to write at the end: every query as it was ranked before the model learned from it.",
)
@run_name_option
@metrics_option("ndcg@1,ndcg@5,ndcg@10,map")
@convention_option()
@click.option("--max-label", type=float, metavar="L", help="Highest grade of the scale; the metric err needs it.")
@click.option(
    "--n-features",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of features of LETOR text.  [default: those in its first 4 MiB]",
)
@qrels_option
@reading_options
@click.option(
    "--batch-queries",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Queries read at a time; this affects only the speed.  [default: {FILE_BATCH}; from a pipe 1]",
)
@json_option
@quiet_option
@debug_option
@click.pass_context
def online_command(ctx: click.Context, **options: Any) -> None:
    """Learn from TRAIN (LETOR text, CSV, TSV, Parquet or cache; - is standard input) query by query.

    Every query is first ranked by the current model and evaluated, and only then learned from. The metrics are means
    over all queries so far (progressive, or prequential, validation). A query is a run of consecutive rows with one id.
    MODEL is written atomically and holds all that --resume needs: a run that was killed and resumed gives the same
    result as an uninterrupted one.

    \b
    Examples:
      ranksvm online train.txt --learner solar2 --checkpoint every 1000 -o model.rsvm
      ranksvm online train.txt --learner solar2 --checkpoint every 1000 -o model.rsvm --resume
      zcat *.gz | ranksvm online - --n-features 136 --one-based -o model.rsvm
    """
    _resolve_options(options)
    watch = Stopwatch()
    with Progress(options["quiet"]) as progress, _run_file(options["run"]) as file:
        online = _Online(ctx, options, progress, file)
        try:
            with watch("learning"):
                online.run()
        except KeyboardInterrupt:
            if is_debugging(ctx) or not online.saved:
                raise
            known = f"{options['output']} has {queries(online.saved)}"
            say(f"\nInterrupted: {known}; --resume continues from there.", err=True)
            ctx.exit(EXIT_INTERRUPTED)
    report = online.report(watch)
    if options["as_json"]:
        print_json(report)
    else:
        _show(report)


@contextlib.contextmanager
def _run_file(path: Path | None) -> "Iterator[IO[bytes] | None]":
    """The file for the rankings; it has a temporary name until the stream has ended."""
    if path is None:
        yield None
        return
    from ranksvm._util.atomic_files import atomic_text_file

    with atomic_text_file(path) as file:
        yield file


def _resolve_options(options: dict[str, Any]) -> None:
    """Fill in defaults that depend on other options; refuse to overwrite a default file."""
    check_run_name(options["run"] is not None, "--run")
    checkpoint = options["checkpoint"] and options["checkpoint"][1]
    options["checkpoint"] = checkpoint
    if options["output"] is None and (checkpoint or options["resume"]):
        if DEFAULT_MODEL.exists() and not options["resume"]:
            raise click.UsageError(
                f"{DEFAULT_MODEL} exists: add --resume to continue from it, or name another file with -o."
            )
        options["output"] = DEFAULT_MODEL
    if options["output"] is not None and is_special(options["output"]) and (checkpoint or options["resume"]):
        raise click.UsageError("--checkpoint and --resume need a model file: a pipe is written once, at the end.")
    if options["run"] is not None and options["resume"]:
        raise click.UsageError("--run would lack the queries learned from before --resume.")
    options["every"] = options["every"] or checkpoint or EVERY
    if options["batch_queries"] is None:
        piped = options["train"] == STDIN or not stat.S_ISREG(os.stat(options["train"]).st_mode)
        options["batch_queries"] = 1 if piped else FILE_BATCH


class _Online:
    """One run of the command."""

    def __init__(
        self, ctx: click.Context, options: dict[str, Any], progress: Progress, file: "IO[bytes] | None" = None
    ):
        from ranksvm.metrics import CumulativeMetrics

        self._options, self._progress, self._file = options, progress, file
        self._source = titled(options["train"])
        self._shown = 0.0
        qrels = read_judgments(options["qrels"])
        self._judged = None if qrels is None else Judged(qrels, self._source)
        self.saved: int | None = None  # queries in the saved model
        metrics = CumulativeMetrics(options["metrics"], options["convention"], max_label=options["max_label"])
        if options["learner"] == "prank" and options["levels"] is None:
            options["levels"] = self._levels()
        self._run = OnlineRun(options["learner"], make_learner(ctx, options), metrics)
        self.resumed_from = 0
        if options["resume"]:
            self._resume()

    def run(self) -> None:
        """Rank and learn until the stream ends; the model is saved even after an error or Ctrl-C."""
        self._follow()
        if self._judged is not None:
            self._judged.report(self._progress)

    def _follow(self) -> None:
        with CtrlC() as ctrl_c:
            try:
                self._learn(ctrl_c)
            except BaseException:
                # a bad line or an interrupt: all earlier queries are complete
                if self._run.is_whole and self._run.n_queries > (self.saved or 0):
                    self._save(ctrl_c)
                    self._tell_saved()
                raise
            self._save(ctrl_c)
            self._tell_saved()

    def _tell_saved(self) -> None:
        if self.saved is not None:
            self._progress.line(f"Saved {self._options['output']}: {queries(self.saved)}")

    def _learn(self, ctrl_c: CtrlC) -> None:
        from ranksvm.exceptions import DataError

        checkpoint, every = self._options["checkpoint"], self._options["every"]
        for batch in self._run.rest_of(self._stream(), self._source):
            for part in parts_of(batch, self._run.n_queries, every):
                for piece in parts_of(part, self._run.n_queries, checkpoint or every):
                    with ctrl_c.waits():
                        scores = self._run.learn(piece, self._source)
                    if self._file is not None:
                        self._write_run(piece, scores)
                    if checkpoint and self._run.n_queries % checkpoint == 0:
                        self._save(ctrl_c)
                self._tell(every)
        if not self._run.n_queries:
            raise DataError(f"{self._source} has no row of data.")

    def _write_run(self, data: "RankingData", scores: "np.ndarray") -> None:
        from ranksvm.datasets.runs import Run
        from ranksvm.datasets.trec_files import run_lines

        assert self._file is not None
        first_row = self._run.metrics.n_rows - data.n_rows
        for line in run_lines(Run.from_scores(data, scores, self._options["run_name"], first_row=first_row)):
            self._file.write(f"{line}\n".encode())

    def _stream(self) -> "Iterator[RankingData]":
        from ranksvm.datasets.streams import iter_data

        n_features, reading = self._options["n_features"], self._options["reading"]
        # If the user gives the number of features, and whether feature numbers start at 0 or 1, the queries of a pipe
        # are read as they arrive.
        known = n_features is not None and reading["zero_based"] != "auto"
        options = {
            "n_features": n_features,
            "sparse": n_features > DENSE_UP_TO if known else None,
        }
        path = "-" if self._options["train"] == STDIN else self._options["train"]
        labels = self._judged is None
        batch = self._options["batch_queries"]
        stream = iter_data(path, batch_queries=batch, require_labels=labels, **reading, **options)
        return stream if self._judged is None else self._judged(stream)

    def _levels(self) -> list[float]:
        """The levels (possible labels) of the resumed model, or else all labels in the file."""
        if self._options["resume"] and self._options["output"].exists():
            from ranksvm.model_files.persistence import load

            # the model of another learner may have no levels; it is refused later
            return getattr(load(self._options["output"]), "levels", [])
        if self._source == "standard input" or not stat.S_ISREG(os.stat(self._source).st_mode):
            raise click.UsageError("--learner prank needs --levels, such as 0,1,2: a pipe cannot be read twice.")
        import numpy as np

        self._progress.now(f"Looking for the levels of {self._source}")
        known: set[float] = set()
        for batch in self._stream():
            known.update(np.unique(batch.y).tolist())
        return sorted(known)

    def _resume(self) -> None:
        path = self._options["output"]
        if not path.exists():
            self._progress.line(f"{path} does not exist yet: starting with the first query")
            return
        self._run = self._run.resumed(path)
        self.saved = self.resumed_from = self._run.n_queries
        self._progress.line(f"Continuing from {path}: {queries(self.resumed_from)} of {self._source}")

    def _save(self, ctrl_c: CtrlC) -> None:
        if self._options["output"] is None:
            return
        with ctrl_c.waits():
            self._run.save(self._options["output"], self._source)
            self.saved = self._run.n_queries

    def _tell(self, every: int) -> None:
        """Report progress: continuously on a terminal, after every ``every`` queries elsewhere."""
        now = time.monotonic()
        is_due = self._run.n_queries % every == 0
        if not self._options["quiet"] and (is_due or now - self._shown > LIVE):
            means = ", ".join(f"{name} {number(mean)}" for name, mean in self._run.metrics.means.items())
            text = f"{queries(self._run.n_queries)}: {means}"
            if is_due:
                self._progress.iteration(text)
            else:
                self._progress.now(text)
            self._shown = now

    def report(self, watch: Stopwatch) -> dict[str, Any]:
        """The results, for people and machines."""
        ranker, metrics = self._run.ranker, self._run.metrics
        return {
            "command": "online",
            "data": self._source,
            "learner": self._options["learner"],
            "parameters": ranker.get_params(deep=False),
            "model": None if self._options["output"] is None else str(self._options["output"]),
            "run": None if self._options["run"] is None else str(self._options["run"]),
            "resumed_from": self.resumed_from,
            "queries": metrics.n_queries,
            "queries_without_relevant": metrics.n_without_relevant,
            "rows": metrics.n_rows,
            "pairs": ranker.n_pairs_,
            "updates": ranker.n_updates_,
            "convention": metrics.convention.name,
            "metrics": metrics.means,
            "seconds": watch.seconds,
        }


def _show(report: dict[str, Any]) -> None:
    rows = [[name, number(mean)] for name, mean in report["metrics"].items()]
    of = f"{report['data']}: {queries(report['queries'])}, each ranked before it was learned from"
    print_table([f"metric ({report['convention']})", "mean so far"], rows, title=of)
    say()
    unit = "document" if report["learner"] == "prank" else "pair"
    facts = [
        ("learner", report["learner"]),
        ("seen", f"{counted(report['pairs'], unit)}, of which {count(report['updates'])} changed the model"),
        ("time", seconds(report["seconds"]["learning"])),
    ]
    if report["resumed_from"]:
        facts.append(("resumed", f"after {queries(report['resumed_from'])}"))
    facts.append(("model", report["model"] or "not written: -o MODEL writes it"))
    print_facts(facts)
