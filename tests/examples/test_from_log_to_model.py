"""The example runs from a log to a decision of users, and its model beats the old rankers."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "examples" / "from_log_to_model.py"


def test_from_a_log_to_a_decision(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    spec = importlib.util.spec_from_file_location("from_log_to_model", PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(["--folder", str(tmp_path), "--impressions", "8000"])
    text = capsys.readouterr().out
    assert "users prefer the new model" in text
    values = {line.split()[2].rstrip(","): float(line.split()[-1]) for line in text.splitlines() if "labels:" in line}
    assert values["new"] > max(values["title"], values["freshness"]) + 0.05
    assert {path.name for path in tmp_path.iterdir()} == {"log.parquet", "bias.json", "model.json"}
