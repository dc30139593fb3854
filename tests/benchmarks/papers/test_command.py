"""The command that measures the papers again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command_runner import command_runner
from papers.papers import PAPERS
from ranksvm import make_ranking, write_letor
from reproduce import main

SCRIPTS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def reproduce():
    """Runs the command; fails the test if the exit code is not the expected one."""

    def run(*arguments, code=0):
        result = command_runner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == code, f"exit code {result.exit_code}\n{result.output}"
        return result

    return run


@pytest.fixture
def reproduce_json(reproduce):
    """Runs the command with --json; returns the document."""
    return lambda *arguments: json.loads(reproduce(*arguments, "--json").stdout)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """MQ2008 with a first fold of tiny data."""
    folder = tmp_path_factory.mktemp("data")
    place = folder / "MQ2008" / "Fold1"
    place.mkdir(parents=True)
    for seed, part in enumerate(("train", "vali", "test")):
        rows = make_ranking(8, 8, 5, n_levels=3, noise=1.0, random_state=seed)
        write_letor(place / f"{part}.txt", rows.X, rows.y, qid=rows.qid)
    return folder


def test_the_papers_are_listed(reproduce, reproduce_json):
    shown = reproduce("--list").stdout
    assert all(name in shown for name in PAPERS)
    assert reproduce_json("--list")["papers"] == PAPERS


def test_without_a_paper_the_papers_are_named(reproduce):
    found = reproduce(code=2)
    assert "name a paper: one of lee-lin-2014, kuo-lee-lin-2014, xu-2019" in found.stderr


def test_items_are_listed_with_what_their_data_lack(reproduce, reproduce_json, data):
    document = reproduce_json("lee-lin-2014", "--list", "--data", data)
    items = {item["name"]: item for item in document["items"]}
    assert items["quality"]["runs"]
    assert items["quality"]["missing"] == ["MQ2007"]
    assert "Yahoo-set1" in items["times"]["missing"]
    xu = reproduce_json("xu-2019", "--list", "--data", data)["items"]
    assert {item["name"]: item["runs"] for item in xu} == {
        **dict.fromkeys(["contents", "table-1", "figure-2", "quality", "sensitivity", "curves"], True),
        **dict.fromkeys(["algorithms", "errata"], True),
        **dict.fromkeys(["table-6", "table-7"], False),
    }
    shown = reproduce("xu-2019", "--list", "--data", data).stdout
    assert "- OHSUMED: LETOR 3.0" in shown
    assert f"DIR is {data}" in shown


def test_an_item_is_printed_as_markdown(reproduce, data):
    result = reproduce("lee-lin-2014", "TABLE-5", "--data", data, "--quick")
    assert result.stdout.startswith("# Tables 3 and 5: C, pairwise accuracy and mean NDCG of RankSVM\n")
    assert "(published 82.70)" in result.stdout
    assert "figures are rough and are not judged" in result.stdout
    assert "A figure is *equal* to the published one" not in result.stdout
    assert "Get it from https://" in result.stdout
    assert "lee-lin-2014 quality: no published figure judged" in result.stderr
    # settings that do not converge are part of what is shown
    assert "Warning" not in result.stderr
    assert "iteration" not in result.stderr


def test_without_quick_figures_are_judged(reproduce, data):
    result = reproduce("jin-lin-2014", "accuracy", "--data", data)
    assert "(published 80.24: " in result.stdout
    assert "A figure is *equal* to the published one" in result.stdout
    assert "jin-lin-2014 accuracy: 3 published figures: " in result.stderr


def test_a_paper_writes_pages_tables_and_a_summary(reproduce, data, tmp_path):
    pytest.importorskip("matplotlib")
    reproduce("wang-2015", "--data", data, "--quick", "-o", tmp_path, "-q")
    names = {path.name for path in (tmp_path / "wang-2015").iterdir()}
    assert names == {
        *("README.md", "contents.md", "contents-places.csv", "batch.md", "batch-MQ2008.csv"),
        *("online.md", "online-MQ2008.csv", "online-MQ2008-as-printed.csv"),
        *("figure-2.md", "figure-2-map.csv", "figure-2-map.png"),
        *("losses.md", "losses-losses.csv", "losses-regret.png"),
    }
    summary = (tmp_path / "wang-2015" / "README.md").read_text(encoding="utf-8")
    assert "[online](online.md)" in summary


def test_long_items_run_only_by_name_or_with_all(reproduce_json, data):
    document = reproduce_json("kuo-lee-lin-2014", "--data", data, "--quick", "-q")
    assert [item["name"] for item in document["items"]] == ["contents", "data", "figure-1", "levels"]
    document = reproduce_json("kuo-lee-lin-2014", "--all", "--data", data, "--quick", "-q")
    assert [item["name"] for item in document["items"]] == ["contents", "data", "grid", "mq2007", "figure-1", "levels"]
    assert [item["ran"] for item in document["items"]] == [True, True, True, False, True, True]


def test_the_json_has_every_figure_with_its_verdict(reproduce_json, data):
    document = reproduce_json("jin-lin-2014", "accuracy", "--data", data, "-q")
    (item,) = document["items"]
    training, test, *_ = item["figures"]
    assert (training["published"], test["published"]) == (80.24, None)
    assert training["verdict"] in {"equal", "close", "better", "worse"}
    assert test["verdict"] is None
    assert item["found"].startswith("3 published figures: ")


def test_a_search_that_runs_out_of_time_says_how_to_go_on(reproduce, data, tmp_path):
    cache = tmp_path / "fits.jsonl"
    arguments = ("xu-2019", "sensitivity", "--data", data, "--quick", "--cache", cache, "-q")
    stopped = reproduce(*arguments, "--seconds", 0, code=1)
    assert "fits are left: run the same command again" in stopped.stderr
    reproduce(*arguments)
    n_fits = len(cache.read_text(encoding="utf-8").splitlines())
    reproduce(*arguments)
    assert len(cache.read_text(encoding="utf-8").splitlines()) == n_fits > 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["xu-2018"], "xu-2019"),
        (["xu-2019", "table-9"], "xu-2019 has no item 'table-9'; its items are contents, table-1, figure-2, quality"),
        (["wang-2015", "--data", "nowhere"], "--data nowhere: there is no such folder."),
        (["wang-2015", "--orders", "1"], "--orders"),
    ],
)
def test_wrong_usage_is_refused_before_any_work(reproduce, arguments, expected):
    assert expected in reproduce(*arguments, code=2).stderr


def test_without_matplotlib_output_is_refused_before_any_work(data, tmp_path):
    script = "import sys; sys.modules['matplotlib'] = None\nfrom reproduce import main\nmain(sys.argv[1:])"
    arguments = ["wang-2015", "--data", str(data), "--quick", "-o", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=SCRIPTS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert 'pip install "ranksvm[plot]"' in done.stderr
    assert not (tmp_path / "out").exists()
    # an item without a plot needs none
    arguments[:1] = ["lee-lin-2014", "data"]
    subprocess.run([sys.executable, "-c", script, *arguments], cwd=SCRIPTS, check=True, capture_output=True)
    assert (tmp_path / "out" / "lee-lin-2014" / "data.md").exists()


def test_help_and_lists_of_papers_import_no_numpy():
    script = (
        "import sys; from reproduce import main\n"
        "for arguments in (['-h'], ['--list', '--json']):\n"
        "    try: main(arguments)\n"
        "    except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=SCRIPTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout[done.stdout.index("{") :])["papers"] == PAPERS
