"""What publishes and checks the project: workflows, hooks before a commit, and the citation."""

import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / ".github" / "workflows").glob("*.yml")))
def test_actions_are_pinned_by_the_sha_of_a_named_release(name):
    text = (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
    used = [line for line in text.splitlines() if re.match(r"\s*- uses: ", line)]
    assert used
    for line in used:
        assert re.fullmatch(r"\s*- uses: [\w./-]+@[0-9a-f]{40}  # (v\d+\.\d+\.\d+|release/v\d+)", line), line
    assert {
        step["uses"] for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"] if "uses" in step
    } == {re.search(r"uses: (\S+)", line)[1] for line in used}


def test_hooks_before_a_commit_are_checks_of_make_lint():
    lint = subprocess.run(["make", "-n", "lint"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    for hook in repository["hooks"]:
        assert hook["entry"].removesuffix(" --force-exclude") in lint
        for pattern in ("files", "exclude"):
            assert re.compile(hook.get(pattern, ""))


def test_updates_are_of_actions():
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    assert [update["package-ecosystem"] for update in updates] == ["github-actions", "pip"]


def test_the_oldest_dependencies_are_constrained_also_those_with_extras():
    printed = subprocess.run([sys.executable, ROOT / ".ci" / "oldest.py"], capture_output=True, text=True, check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras, groups = project["project"]["optional-dependencies"], project["dependency-groups"]
    lists = [project["project"]["dependencies"], *extras.values(), groups["build"], groups["test"]]
    bounded = {re.match(r"[\w.-]+", one)[0] for requirements in lists for one in requirements if ">=" in one}
    assert {line.partition("==")[0] for line in printed.stdout.splitlines()} == bounded


def test_the_citation_is_of_this_software():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"].startswith("ranksvm")
    assert {"authors", "license", "message", "references"} <= citation.keys()
