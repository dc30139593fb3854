"""``ranksvm reproduce``."""

import json
import subprocess
import sys

import pytest

from ranksvm import make_ranking, write_letor
from ranksvm.reproduce.papers import PAPERS


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


def test_the_papers_are_listed(ranksvm, ranksvm_json):
    shown = ranksvm("reproduce", "--list").stdout
    assert all(name in shown for name in PAPERS)
    assert ranksvm_json("reproduce", "--list")["papers"] == PAPERS


def test_without_a_paper_the_papers_are_named(ranksvm):
    found = ranksvm("reproduce", code=2)
    assert "name a paper: one of lee-lin-2014, kuo-lee-lin-2014, xu-2019" in found.stderr


def test_items_are_listed_with_what_their_data_lack(ranksvm, ranksvm_json, data):
    document = ranksvm_json("reproduce", "lee-lin-2014", "--list", "--data", data)
    items = {item["name"]: item for item in document["items"]}
    assert items["quality"]["runs"]
    assert items["quality"]["missing"] == ["MQ2007"]
    assert "Yahoo-set1" in items["times"]["missing"]
    xu = ranksvm_json("reproduce", "xu-2019", "--list", "--data", data)["items"]
    assert {item["name"]: item["runs"] for item in xu} == {
        **dict.fromkeys(["table-1", "figure-2", "quality", "sensitivity", "curves", "algorithms", "errata"], True),
        "table-6": False,
    }
    shown = ranksvm("reproduce", "xu-2019", "--list", "--data", data).stdout
    assert "- OHSUMED: LETOR 3.0" in shown
    assert f"DIR is {data}" in shown


def test_an_item_is_printed_as_markdown(ranksvm, data):
    result = ranksvm("reproduce", "lee-lin-2014", "TABLE-4", "--data", data, "--quick")
    assert result.stdout.startswith("# Table 4: pairwise accuracy and mean NDCG\n")
    assert "(published 82.70: " in result.stdout
    assert "A figure is *equal* to the published one" in result.stdout
    assert "Get it from https://" in result.stdout
    assert "lee-lin-2014 quality: 6 published figures: " in result.stderr
    # settings that do not converge are part of what is shown
    assert "Warning" not in result.stderr
    assert "iteration" not in result.stderr


def test_a_paper_writes_pages_tables_and_a_summary(ranksvm, data, tmp_path):
    pytest.importorskip("matplotlib")
    ranksvm("reproduce", "wang-2015", "--data", data, "--quick", "-o", tmp_path, "-q")
    names = {path.name for path in (tmp_path / "wang-2015").iterdir()}
    assert names == {
        *("README.md", "online.md", "online-MQ2008.csv", "batch.md", "batch-MQ2008.csv"),
        *("losses.md", "losses-losses.csv", "losses-regret.png"),
    }
    summary = (tmp_path / "wang-2015" / "README.md").read_text(encoding="utf-8")
    assert "[online](online.md)" in summary


def test_long_items_run_only_by_name_or_with_all(ranksvm_json, data):
    document = ranksvm_json("reproduce", "kuo-lee-lin-2014", "--data", data, "--quick", "-q")
    assert [item["name"] for item in document["items"]] == ["data", "levels"]
    document = ranksvm_json("reproduce", "kuo-lee-lin-2014", "--all", "--data", data, "--quick", "-q")
    assert [item["name"] for item in document["items"]] == ["data", "grid", "mq2007", "levels"]
    assert [item["ran"] for item in document["items"]] == [True, True, False, True]


def test_the_json_has_every_figure_with_its_verdict(ranksvm_json, data):
    document = ranksvm_json("reproduce", "jin-lin-2014", "accuracy", "--data", data, "-q")
    (item,) = document["items"]
    training, test = item["figures"]
    assert (training["published"], test["published"]) == (80.24, None)
    assert training["verdict"] in {"equal", "close", "better", "worse"}
    assert test["verdict"] is None
    assert item["found"].startswith("1 published figure: ")


def test_a_search_that_runs_out_of_time_says_how_to_go_on(ranksvm, data, tmp_path):
    cache = tmp_path / "fits.jsonl"
    arguments = ("reproduce", "xu-2019", "sensitivity", "--data", data, "--quick", "--cache", cache, "-q")
    stopped = ranksvm(*arguments, "--seconds", 0, code=1)
    assert "fits are left: run the same command again" in stopped.stderr
    ranksvm(*arguments)
    n_fits = len(cache.read_text(encoding="utf-8").splitlines())
    ranksvm(*arguments)
    assert len(cache.read_text(encoding="utf-8").splitlines()) == n_fits > 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["xu-2018"], "xu-2019"),
        (["xu-2019", "table-9"], "xu-2019 has no item 'table-9'; its items are table-1, figure-2, quality"),
        (["wang-2015", "--data", "nowhere"], "--data nowhere: there is no such folder."),
        (["wang-2015", "--orders", "1"], "--orders"),
    ],
)
def test_wrong_usage_is_refused_before_any_work(ranksvm, arguments, expected):
    assert expected in ranksvm("reproduce", *arguments, code=2).stderr


def test_without_matplotlib_output_is_refused_before_any_work(data, tmp_path):
    script = "import sys; sys.modules['matplotlib'] = None\nfrom ranksvm.cli import main\nmain(sys.argv[1:])"
    arguments = ["reproduce", "wang-2015", "--data", str(data), "--quick", "-o", str(tmp_path / "out")]
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'ranksvm[plot]'" in done.stderr
    assert not (tmp_path / "out").exists()
    # an item without a plot needs none
    arguments[1:2] = ["lee-lin-2014", "data"]
    subprocess.run([sys.executable, "-c", script, *arguments], check=True, capture_output=True)
    assert (tmp_path / "out" / "lee-lin-2014" / "data.md").exists()


def test_help_and_lists_of_papers_import_no_numpy():
    script = (
        "import sys; from ranksvm.cli import main\n"
        "for arguments in (['reproduce', '-h'], ['reproduce', '--list', '--json']):\n"
        "    try: main(arguments)\n"
        "    except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout[done.stdout.index("{") :])["papers"] == PAPERS
