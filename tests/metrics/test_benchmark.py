"""The benchmark of the metrics runs."""

import importlib.util
from pathlib import Path


def test_benchmark_runs_and_its_tools_agree(tmp_path, capsys, monkeypatch):
    path = Path(__file__).parents[2] / "benchmarks" / "metrics.py"
    monkeypatch.syspath_prepend(path.parent)
    spec = importlib.util.spec_from_file_location("benchmark_of_metrics", path)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    benchmark.main(["--rows", "1200", "-o", str(tmp_path / "out.md")])
    assert (tmp_path / "out.md").read_text() in capsys.readouterr().out
    y, scores, qid = benchmark.make(1200, 120)
    ours = benchmark.metrics.evaluate(y, scores, qid, "ndcg@10", convention="sklearn").means["ndcg@10"]
    assert abs(benchmark.sklearn_by_query(y, scores, qid) - ours) < 1e-12
