"""Every benchmark runs, on tiny data, and writes the page it promises."""

import pathlib
import subprocess
import sys

import pytest

from ..forked import run_script

FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks"
# What the page of each must hold.
TABLES = {
    "published": "| **mean: SVM-rank** |",
    "baselines": "| RV-SVM, linear programme |",
    "speed": "| instruction set | C | seconds | units (least) |",
    "solver_choice": "| data | C | newton, ms |",
    "commands": "| `ranksvm train -C 1` |",
    "sweep_levels": "| k | evaluate, direct, ms |",
    "peers": "| RankSVM (ours) |",
    "additive": "| EBM, labels as numbers |",
    "sparse_rows": "| loss | C | solver | tol |",
    "direct": "| 60 x 150, one list | hinge | 1 | direct |",
    "wide": "| data | loss | C | pairs | auto took |",
    "cutting_plane": "| made | OCAS |",
    "losses": "| C | loss, tol | seconds |",
    "kernel": "| KernelRankSVM | newton |",
    "many_levels": "| ours, TRON, pairs listed |",
    "kernel_grid": "| mean_ndcg | 1: RBF kernel |",
    "kernel_quality": "| SVC on explicit pairs |",
    "kernel_product": "| linear | float32 | not formed |",
    "kernel_approximation": "| uniform | computed |",
    "low_rank_settings": "| FactorizedRankSVM, any C |",
    "factorized": "| NumPy, blocks of documents |",
    "regularized": "| Algorithm 2, safe step |",
    "imbalance": "| RankSVM in hindsight",
    "online_speed": "| features | update | million pairs/s |",
    "scale": "| library | undisturbed, s | with a kill, s | outcome |",
    "beyond_memory": "| file, GB | rows | limit, MB |",
    "model_selection": "| data | rows, train / valid | path, s |",
    "weight_intervals": "| 48 x 60 (6 queries), C = 0.001 |",
    "clicks": "| made | 2,000 |",
    "clicks_learning": "| made | labels |",
    "clicks_folds": "| made | whole |",
    "click_worlds": "| rank dcg@10 |",
    "serving": "| feedback, 256 connections |",
    "serving_clicks": "| SOLAR-II | position | FairPairs |",
}


def run(script, output):
    done = run_script(FOLDER / f"{script}.py", "--smoke", "--output", output)
    assert done.returncode == 0, done.stderr
    return output.read_text(encoding="utf-8")


def page_of(script, folder):
    page = run(script, folder / f"{script}.md")
    assert f"Command: `python benchmarks/{script}.py --smoke" in page
    assert "cores" in page
    assert not list(folder.glob("*.part*"))
    return page


@pytest.mark.parametrize("script", TABLES)
def test_benchmark_writes_its_page(script, tmp_path, request):
    if script == "published":
        request.getfixturevalue("shared_data")
    if script in {
        "sweep_levels",
        "cutting_plane",
        "model_selection",
        "kernel_quality",
        "online_speed",
    }:
        pytest.importorskip("matplotlib")
    if script == "serving":
        for module in ("starlette", "uvicorn", "msgspec"):
            pytest.importorskip(module)
    if script == "scale":
        pytest.importorskip("distributed")
    assert TABLES[script] in page_of(script, tmp_path)


def test_every_benchmark_is_run_somewhere():
    # these have tests of their own
    scripts = {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_")}
    assert scripts - {"figures", "gpu", "gpu_static", "metrics", "read_letor", "reproduce", "track"} == set(TABLES)


def test_without_a_gpu_its_page_claims_nothing(tmp_path):
    pytest.importorskip("matplotlib")
    page = page_of("gpu", tmp_path)
    assert "| fused_loss |" in page
    assert "**Not yet measured.**" in page
    assert "## Goals" not in page
    assert "beside the processor's: all passed" in page
    done = run_script(FOLDER / "gpu.py")
    if done.returncode == 0:
        pytest.skip("There is a GPU here.")
    assert done.stderr.count("\n") == 1
    assert "--host runs tiny data on the host" in done.stderr


def test_the_page_of_the_gpu_says_whether_it_was_measured():
    page = (FOLDER / "results" / "gpu.md").read_text(encoding="utf-8")
    assert page.startswith("# RankSVM on a GPU")
    assert ("**Not yet measured.**" in page) != ("GPU: " in page)


def test_the_page_of_the_gpu_has_what_was_measured_where_a_part_fails(tmp_path):
    """What a part raises, of whatever class, costs that part alone; one that was not begun in time is named."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "gpu.md"
    code = (
        f"import sys; sys.path.insert(0, {str(FOLDER)!r})\n"
        "import gpu\n"
        "def fail(*_): raise MemoryError('no room for the large one')\n"
        "gpu.large_product = fail\n"
        f"gpu.main(['--smoke', '-o', {str(path)!r}, '--only', 'kernel'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    page = path.read_text(encoding="utf-8")
    assert "Not measured: a large kernel matrix: MemoryError: no room for the large one." in page
    assert "MemoryError: no room" in done.stderr
    assert "## Exact kernel fit" in page
    command = [FOLDER / "gpu.py", "--smoke", "--output", path, "--only", "lists"]
    assert run_script(*command).returncode == 0
    page = path.read_text(encoding="utf-8")
    assert "## Length of lists" in page
    assert "## Correctness" not in page
    assert run_script(*command, "--seconds", "-1").returncode == 1
    assert "Not measured: lists of all lengths: TimeoutError: no time was left." in path.read_text(encoding="utf-8")
