"""Progress lines, and the log of the library turned into them."""

import io
import logging
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

from ranksvm._util.verbosity import PASSING, Steps
from ranksvm.cli.output import progress as module
from ranksvm.cli.output.progress import Progress, Stopwatch


@pytest.fixture
def logger():
    return logging.getLogger("ranksvm.solvers")


def iteration(logger, text, *args):
    logger.info(text, *args, extra=PASSING)


def test_lines_and_log_records_go_to_stderr(capsys, logger):
    with Progress() as progress:
        progress.line("Read [bold] file")
        iteration(logger, "iteration %d", 1)
        logging.getLogger("ranksvm.estimators").info("C = %g", 0.5)
        progress.now("passing")
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["Read [bold] file", "  iteration 1", "C = 0.5"]
    assert captured.out == ""


def test_quiet_is_silent(capsys, logger):
    with Progress(quiet=True) as progress:
        progress.line("Read")
        progress.now("Training")
        iteration(logger, "iteration 1")
    assert capsys.readouterr() == ("", "")


def test_iterations_may_be_left_out_where_there_is_no_terminal(capsys, logger):
    with Progress(iterations_from=1):
        iteration(logger, "iteration 1")
        logger.warning("trouble")
        logging.getLogger("ranksvm.estimators").info("C = 0.5")
    assert capsys.readouterr().err.splitlines() == ["trouble", "C = 0.5"]


def test_all_that_is_logged_may_pass(capsys):
    with Progress(iterations_from=2, fits_from=1) as progress:
        logging.getLogger("ranksvm.estimators").info("C = 0.5")
        logging.getLogger("ranksvm.estimators").warning("trouble")
        progress.line("1 of 2")
    assert capsys.readouterr().err.splitlines() == ["trouble", "1 of 2"]


@pytest.mark.parametrize(("verbose", "expected"), [(0, 0), (1, 1), (2, 2)])
def test_lines_from_a_level_of_verbose(capsys, logger, verbose, expected):
    with Progress(False, verbose, iterations_from=2, fits_from=1):
        logging.getLogger("ranksvm.estimators").info("C = 0.5", extra=Steps(3).next())
        iteration(logger, "iteration 1")
    assert capsys.readouterr().err.splitlines() == ["C = 0.5", "  iteration 1"][:expected]


def test_a_long_silence_ends_with_what_passes(capsys, logger, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    fits, steps = logging.getLogger("ranksvm.estimators"), Steps(2)
    with Progress(iterations_from=2, fits_from=1) as progress:
        progress.n_fits = 30
        progress.heading = "1 of 3 compared "
        for _ in range(2):
            now[0] += module.LONGEST_SILENCE - 1.0
            fits.info("C = 0.5: map 0.4 on fold 1", extra=steps.next())
        iteration(logger, "iteration %d", 7)
        now[0] += module.LONGEST_SILENCE + 1.0
        iteration(logger, "iteration %d", 8)
    assert capsys.readouterr().err.splitlines() == [
        "1 of 3 compared C = 0.5: map 0.4 on fold 1 (2 of 30 fits done)",
        "1 of 3 compared iteration 8 (2 of 30 fits done)",
    ]


def test_quiet_stays_silent_for_long(capsys, logger, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_SILENCE", -1.0)
    with Progress(quiet=True, iterations_from=2):
        iteration(logger, "iteration 1")
    assert capsys.readouterr() == ("", "")


def test_the_logger_is_left_as_it_was(logger):
    root = logging.getLogger("ranksvm")
    before = root.level, list(root.handlers)
    with Progress():
        assert root.level == logging.INFO
    assert (root.level, root.handlers) == before


def test_on_a_terminal_iterations_pass_and_lines_stay(monkeypatch, logger):
    terminal = io.StringIO()

    def console(**_):
        return Console(file=terminal, force_terminal=True, width=80, color_system=None)

    monkeypatch.setattr("rich.console.Console", console)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress() as progress:
        iteration(logger, "iteration 1: objective [1, 2]")
        time.sleep(0.2)  # the live line is drawn ten times a second or so
        progress.line("C = 1 done")
        progress.heading = "1 of 2 compared "
        progress.now("C = 2")
        time.sleep(0.2)
        logging.getLogger("ranksvm.estimators").info("C = 4: passes", extra=Steps(30).next())
        time.sleep(0.2)
    assert "1 of 30" in terminal.getvalue()
    assert not any(line.strip() == "C = 4: passes" for line in terminal.getvalue().splitlines())
    assert "iteration 1: objective [1, 2]" in terminal.getvalue()
    assert "C = 1 done\n" in terminal.getvalue()
    assert "1 of 2 compared C = 2" in terminal.getvalue()


def test_a_stopwatch_adds_up_by_name(monkeypatch):
    clock = iter([0.0, 1.0, 5.0, 7.0, 10.0, 10.5])
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    watch = Stopwatch()
    for name in ["reading", "training", "reading"]:
        with watch(name):
            pass
    assert watch.seconds == {"reading": 1.5, "training": 2.0}
