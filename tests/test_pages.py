"""Commands in the pages of docs/ are run, in the order of their page."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from code_tables import DOCS
from command_runner import command_runner
from ranksvm import RankSVM, make_ranking
from ranksvm.cli import main


def commands(page):
    """The lines of the ``console`` blocks of a page that begin with ``$ ranksvm``."""
    for block in re.findall(r"^```console\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.S | re.M):
        yield from (line[2:] for line in block.splitlines() if line.startswith("$ ranksvm "))


def test_start(tmp_path, monkeypatch):
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    monkeypatch.chdir(tmp_path)
    lines = list(commands("start.md"))
    assert len(lines) == 6
    for line in lines:
        result = command_runner().invoke(main, shlex.split(line)[1:])
        assert result.exit_code == 0, (line, result.stderr)
    for name in ("model.rsvm", "report.html", "ranked.sql"):
        assert (tmp_path / name).stat().st_size > 1000


def test_the_commands_for_hybrid_search(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "hybrid_search.md").read_text(encoding="utf-8")
    data = make_ranking(n_queries=30, n_docs=8, n_features=2, random_state=0)
    data.feature_names, data.X = ["bm25", "vector"], np.abs(data.X)
    data.to_csv("scores.csv")
    (queries,) = re.findall(r"```json\n(.*?)```", text, re.S)
    Path("queries.json").write_text(queries)
    Path("names.tsv").write_text("bm25\tbm25(title)\nvector\tcloseness(field,embedding)\n")
    lines = [
        "ranksvm train scores.csv --scaler opensearch-minmax --monotone increasing -o opensearch.rsvm",
        "ranksvm train scores.csv --scaler standard --monotone increasing -o vespa.rsvm",
    ]
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        lines += block.replace("\\\n", "").splitlines()
    assert len(lines) == 7
    for line in lines:
        result = command_runner().invoke(main, shlex.split(line)[1:])
        assert result.exit_code == 0, (line, result.stderr)
    retrievers = json.loads(Path("search.json").read_text())["request"]["retriever"]["linear"]["retrievers"]
    assert [next(iter(each["retriever"])) for each in retrievers] == ["standard", "knn"]
    assert "query(weight_bm25_title) double: " in Path("hybrid.profile").read_text()


def test_the_view_of_the_deployment_page_is_called_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "deployment.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ranksvm (export model.rsvm --to sql .*)$", text, re.M)
    words = " ".join(text.split())
    (name,) = re.findall(r"The view is called `(\w+)`, like the file", words)
    data = make_ranking(n_queries=20, n_docs=5, n_features=2, random_state=0)
    ranker = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    ranker.save("model.rsvm")
    Path("columns.tsv").write_text("f1\tbm25\nf2\tlinks\n")
    result = command_runner().invoke(main, shlex.split(line))
    assert result.exit_code == 0, result.stderr
    assert re.search(rf'CREATE [A-Z ]*VIEW [A-Z ]*"{name}"', Path("ranked.sql").read_text())
    (default,) = re.findall(r"from Python, the view is called `(\w+)`", words)
    assert f'"{default}"' in ranker.export(to="sql").text


@pytest.mark.parametrize("name", ["serve", "keys", "replay", "vacuum", "simulate", "demo"])
def test_the_page_on_the_command_line_has_all_options_of(name):
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
    shown = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", " ".join(re.findall(r"^\| `([^`]*)`", section, re.M))))
    command = main.get_command(None, name)
    options = {option for each in command.params if each.param_type_name == "option" for option in each.opts}
    everywhere = {"--json", "--debug", "--quiet", "-q", "--help", "-h"}
    of_data = (
        {"--zero-based", "--label", "--qid", "--docid", "--ignore", "--missing-values"} if name == "simulate" else set()
    )
    assert options - everywhere - of_data == shown & options
    assert shown - options <= {"--ignore-drift"}


def test_pages_name_the_thing_again_and_their_links_say_where_they_lead():
    """A screen reader lists links by their text alone, and "that of" is hard to read in another language."""
    pages = [DOCS.parent / "README.md", DOCS.parent / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
    texts = {path.name: path.read_text(encoding="utf-8") for path in pages}
    assert sum(len(re.findall(r"\b(?:that|those) of\b", text)) for text in texts.values()) <= 15
    bare = re.compile(r"\[(?:measured|too|here|cited|\d+)\]\(", re.IGNORECASE)
    assert [name for name, text in texts.items() if bare.search(text)] == []


def test_every_plus_minus_says_what_it_is():
    tracked = [
        path for folder in ("src", "docs", "examples", "benchmarks") for path in (DOCS.parent / folder).rglob("*")
    ]
    texts = {path: path.read_text(encoding="utf-8") for path in tracked if path.suffix in (".md", ".py", ".html")}
    signed = {path: text for path, text in texts.items() if "±" in text}
    assert len(signed) > 10
    explained = re.compile(r"standard\s+(error|deviation)")
    assert [str(path) for path, text in signed.items() if not explained.search(text)] == []


def test_equations_are_numbered_in_order():
    text = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    numbers = [int(number) for number in re.findall(r"\\tag\{(\d+)\}", text)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) == 24
