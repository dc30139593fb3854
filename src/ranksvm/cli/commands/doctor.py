"""``ranksvm doctor``: what this installation has, what it lacks, and whether its compiled loops compute correctly."""

import importlib.metadata
import re
import shutil
from typing import Any

import click

from ranksvm.cli.options.shared import json_option
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.tables import counted, print_facts, print_json, print_table
from ranksvm.cli.terminal import say

# What each extra adds. Its packages and their minimum versions are read from the metadata of ranksvm.
GIVES = {
    "parquet": "reads and writes Parquet, CSV and TSV",
    "zstd": "reads and writes files compressed by zstd",
    "dataframe": "fits DataFrames of pandas, polars and pyarrow",
    "plot": "draws figures: --plot and the displays",
    "report": "writes the HTML report: ranksvm report",
    "cuda": "fits on NVIDIA GPUs: --device cuda",
    "onnx": "exports models to ONNX",
    "dask": "fits on a cluster: ranksvm.dask",
    "serve": "runs a service that ranks and learns: ranksvm serve",
    "postgres": "stores the log of a service in PostgreSQL",
}
# The extras to install for an extra that is useless alone.
_WITH = {"postgres": "serve,postgres"}
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?(?P<bound>[<>=!~][^;]*)?(?:;(?P<marker>.*))?")
_EXTRA = re.compile(r"extra == ['\"](?P<extra>\w+)['\"]")
_OLDER_PYTHON = re.compile(r"python_version < ['\"](?P<version>[\d.]+)['\"]")
# largest relative difference between the objectives of two instruction sets, which may round differently
_AGREEMENT = 1e-9


@click.command("doctor", short_help="Show versions, processor, GPU and extras, and check them.")
@json_option
@debug_option
@click.pass_context
def doctor_command(ctx: click.Context, as_json: bool) -> None:
    """Show versions, instruction sets, threads, memory, GPUs and extras, and check that this installation works.

    If an extra is missing, the table says what it is for and how to install it. The exit code is 1 if a package is too
    old or a check fails. When you report a problem, include the output.

    \b
    Examples:
      ranksvm doctor
      ranksvm doctor --json
    """
    report = _examined()
    if as_json:
        print_json(report)
    else:
        _show(report)
    if report["problems"]:
        ctx.exit(1)


def _examined() -> dict[str, Any]:
    from ranksvm import environment
    from ranksvm._util.memory import free_memory
    from ranksvm._util.threads import effective_n_jobs

    required, extras = _requirements()
    fits = _fits()
    report = {
        "command": "doctor",
        **environment(),
        "threads": effective_n_jobs(None),
        "free_memory": free_memory(),
        "blas": _blas(),
        "gpu": _gpu(),
        "extras": extras,
        "fits": fits,
    }
    packages = [*required, *(package for extra in extras for package in extra["packages"])]
    old = [
        f"{x['name']} {x['version']} is installed, but ranksvm needs {x['needs']}." for x in packages if x["too_old"]
    ]
    wrong = [f"A fit with the instruction set {x['instruction_set']} {x['problem']}." for x in fits if x["problem"]]
    return {**report, "problems": [*dict.fromkeys(old), *wrong]}


def _requirements() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The packages that ranksvm needs, and its extras with their packages, from its metadata."""
    required: list[dict[str, Any]] = []
    extras: dict[str, list[dict[str, Any]]] = {}
    for line in importlib.metadata.requires("ranksvm") or []:
        match = _REQUIREMENT.match(line)
        if match is None or match["name"] == "ranksvm":  # an extra that combines others
            continue
        marker = match["marker"] or ""
        extra = _EXTRA.search(marker)
        packages = required if extra is None else extras.setdefault(extra["extra"], [])
        if not _is_of_older_python(marker):
            packages.append(_package(match["name"], (match["bound"] or "").strip()))
    return required, [
        {
            "name": name,
            "installed": all(package["version"] is not None for package in packages),
            "packages": packages,
            "gives": GIVES.get(name, ""),
            "install": f'pip install "ranksvm[{_WITH.get(name, name)}]"',
        }
        for name, packages in extras.items()
    ]


def _is_of_older_python(marker: str) -> bool:
    """Whether a requirement is only for older Python versions: the running one has its functions built in."""
    import sys

    older = _OLDER_PYTHON.search(marker)
    return older is not None and sys.version_info[:2] >= _numbers(older["version"])


def _package(name: str, needs: str) -> dict[str, Any]:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return {"name": name, "version": None, "needs": needs, "too_old": False}
    required = re.search(r"[>=]=\s*([\d.]+\d)", needs)
    return {
        "name": name,
        "version": version,
        "needs": needs,
        "too_old": required is not None and _numbers(version) < _numbers(required[1]),
    }


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers at the beginning of a version."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def _blas() -> list[dict[str, Any]]:
    import scipy.linalg  # noqa: F401 - NumPy and SciPy may each have their own BLAS
    from threadpoolctl import threadpool_info

    return [
        {"name": x["internal_api"], "version": x["version"], "threads": x["num_threads"], "for": x.get("architecture")}
        for x in threadpool_info()
        if x["user_api"] == "blas"
    ]


def _gpu() -> dict[str, Any]:
    """Names of the GPUs, or why there is none."""
    from ranksvm.device.cuda import gpu_names
    from ranksvm.exceptions import DeviceError, MissingDependencyError

    try:
        names = gpu_names()
        return {"names": names, "reason": None if names else "the NVIDIA driver is here, but it finds no GPU"}
    except DeviceError as error:
        return {"names": [], "reason": str(error)}
    except MissingDependencyError:
        driver = "an NVIDIA driver is here" if shutil.which("nvidia-smi") else "no NVIDIA driver was found"
        return {"names": [], "reason": f"not asked for: the extra cuda is not installed ({driver})"}


def _fits() -> list[dict[str, Any]]:
    """A small fit with every instruction set of this processor: is it certified, and do all agree?"""
    import ranksvm._compiled.instruction_set as instruction_set
    from ranksvm import RankSVM, make_ranking

    data = make_ranking(n_queries=20, n_docs=10, n_features=5, random_state=0)
    results = []
    used = instruction_set.current()
    try:
        for name in instruction_set.available():
            instruction_set.use(name)
            model = RankSVM(C=0.1, tol=1e-8).fit(data.X, data.y, qid=data.qid)
            results.append({"instruction_set": name, "objective": model.objective_, "certified": model.converged_})
    finally:
        instruction_set.use(used)
    expected = results[0]["objective"]
    for result in results:
        differs = abs(result["objective"] - expected) > _AGREEMENT * expected
        result["problem"] = (
            "has another optimum" if differs else None if result["certified"] else "did not meet its certificate"
        )
    return results


def _show(report: dict[str, Any]) -> None:
    from ranksvm._util.memory import in_words

    apart = ("command", "threads", "free_memory", "blas", "gpu", "extras", "fits", "problems")
    facts = [(name, value) for name, value in report.items() if name not in apart]
    facts += [("threads", str(report["threads"])), ("free memory", in_words(report["free_memory"]))]
    facts += [
        ("BLAS", f"{x['name']} {x['version']}, {counted(x['threads'], 'thread')}, for {x['for']}")
        for x in report["blas"]
    ]
    facts.append(("GPU", ", ".join(report["gpu"]["names"]) or report["gpu"]["reason"]))
    certified = [x["instruction_set"] for x in report["fits"] if x["problem"] is None]
    facts.append(("a small fit", f"certified with {', '.join(certified) or 'none'}"))
    print_facts(facts)
    say()
    rows = [
        [
            extra["name"],
            "yes" if extra["installed"] else "no",
            extra["gives"],
            _packages_in_words(extra["packages"]) if extra["installed"] else extra["install"],
        ]
        for extra in report["extras"]
    ]
    print_table(["extra", "installed", "what it does", "packages, or how to install them"], rows, left=4)
    say()
    for problem in report["problems"]:
        say(f"Problem: {problem}")
    if not report["problems"]:
        say("No problem found.")


def _packages_in_words(packages: list[dict[str, Any]]) -> str:
    return ", ".join(f"{package['name']} {package['version']}" for package in packages) or "built into Python"
