"""What verbose shows: iterations of one fit, lines of a comparison, and a bar on a terminal."""

import io
import logging
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from ranksvm import KernelRankSVM, KernelRankSVMCV, RankSVM, RankSVMCV, make_ranking
from ranksvm._util.verbosity import LiveLine, Steps, steps_of

CS = [0.01, 0.1, 1.0]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=20, n_docs=8, n_features=5, random_state=0)


@pytest.fixture
def no_handlers(monkeypatch):
    """As in a script of a user: pytest's own handlers would take the log."""
    monkeypatch.setattr(logging.Logger, "hasHandlers", lambda _: False)


CHOOSERS = [
    (RankSVMCV(CS, cv=2), 3 * 2),
    (KernelRankSVMCV(CS, [0.1, 1.0], cv=2), 3 * 2 * 2),
]


@pytest.mark.usefixtures("no_handlers")
@pytest.mark.parametrize(("estimator", "n_fits"), CHOOSERS)
def test_a_line_for_every_fit_and_iterations_from_2(data, capsys, estimator, n_fits):
    found = {}
    for verbose in (0, 1, 2):
        estimator.set_params(verbose=verbose).fit(data.X, data.y, qid=data.qid)
        found[verbose] = capsys.readouterr().err.splitlines()
    assert found[0] == []
    fits = [line for line in found[1] if "ndcg@10" in line and " on fold " in line]
    assert len(fits) == n_fits
    assert found[1][-1].startswith("chosen: ")
    assert len(found[1]) == n_fits + 1
    assert not any("iteration" in line for line in found[1])
    assert any("iteration 1: objective" in line for line in found[2])
    assert set(found[1]) < set(found[2])
    if n_fits == 6:
        assert fits[0].startswith("C = 0.01: ndcg@10 0.")
        assert fits[-1].endswith("on fold 2 of 2")
    else:
        assert re.match(r"gamma = 0.1, C = 0.01: ndcg@10 0\.\d+ on fold 1 of 2", fits[0])


@pytest.mark.usefixtures("no_handlers")
def test_one_fit_shows_its_iterations(data, capsys):
    RankSVM(verbose=1).fit(data.X, data.y, qid=data.qid)
    assert "iteration 1: objective" in capsys.readouterr().err


@pytest.mark.usefixtures("no_handlers")
@pytest.mark.parametrize("model", [RankSVM, KernelRankSVM])
def test_one_fit_shows_the_choice_of_its_device(data, capsys, model):
    model(device="auto", verbose=1).fit(data.X, data.y, qid=data.qid)
    assert "device='auto': " in capsys.readouterr().err


def test_a_configured_log_gets_the_same_and_is_left_as_it_was(data, caplog):
    loggers = [logging.getLogger(name) for name in ("ranksvm", "ranksvm.solvers", "ranksvm.fits", "ranksvm.estimators")]
    before = [(each.level, list(each.filters), list(each.handlers)) for each in loggers]
    RankSVMCV(CS, cv=2, verbose=1).fit(data.X, data.y, qid=data.qid)
    assert not any("iteration" in record.getMessage() for record in caplog.records)
    done = [steps_of(record) for record in caplog.records if steps_of(record) is not None]
    assert done == [(number, 6) for number in range(1, 7)]
    RankSVMCV(CS, cv=2, verbose=2).fit(data.X, data.y, qid=data.qid)
    assert any("iteration" in record.getMessage() for record in caplog.records)
    assert [(each.level, list(each.filters), list(each.handlers)) for each in loggers] == before


@pytest.mark.usefixtures("no_handlers")
def test_a_terminal_has_a_bar_below_the_lines(data, monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console", lambda **_: Console(file=shown, force_terminal=True, width=100, color_system=None)
    )
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    RankSVMCV(CS, cv=2, verbose=1).fit(data.X, data.y, qid=data.qid)
    assert "6 of 6" in shown.getvalue()
    assert "━" in shown.getvalue()
    assert "C = 1: ndcg@10" in shown.getvalue()


def test_the_time_left_is_that_of_the_mean_pace(monkeypatch):
    clock = iter([100.0, 100.0, 160.0, 160.0, 160.0])
    # the name in the module, not the function: other threads of this process read the time, too
    monkeypatch.setattr("ranksvm._util.verbosity.time", SimpleNamespace(monotonic=lambda: next(clock)))
    shown = io.StringIO()
    line = LiveLine(Console(file=shown, force_terminal=False))
    line.stop()
    line.steps(1, 7)
    assert line._left(3, 7) == ", 2:00 left"
    assert line._left(7, 7) == ""


def test_the_unit_stands_beside_the_numbers_before_the_time_left(monkeypatch):
    clock = iter([0.0, 0.0, 2.0])
    monkeypatch.setattr("ranksvm._util.verbosity.time", SimpleNamespace(monotonic=lambda: next(clock)))
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=False, width=100)
    line = LiveLine(console)
    line.stop()
    line.text = "Converting big.txt"
    line.steps(620, 2511, "MB")
    console.print(line._line())
    assert "620 of 2511 MB, 0:06 left Converting big.txt" in shown.getvalue()


def test_steps_are_counted():
    steps = Steps(2)
    assert [steps.next(), steps.next()] == [{"ranksvm_steps": (1, 2)}, {"ranksvm_steps": (2, 2)}]
