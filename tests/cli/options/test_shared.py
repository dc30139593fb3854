"""Values of options: numbers, ranges, lists and files."""

import click
import pytest

from command_runner import command_runner
from ranksvm.cli.options.shared import (
    CONVENTIONS,
    OUTPUT_FILE,
    TEXT_FILE,
    CommaList,
    Name,
    NameList,
    Number,
    NumberRange,
)
from ranksvm.cli.options.training import CHOICES, RULES
from ranksvm.losses import LOSSES
from ranksvm.metrics import CONVENTIONS as KNOWN_CONVENTIONS
from ranksvm.model_selection.cross_validation import RULES as RULES_OF_CHOICE


def convert(kind, text):
    return kind.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("0.25", 0.25), ("1e-4", 1e-4), ("2^-3", 0.125), ("2**5", 32), ("10^0.5", 10**0.5), (" 2^4 ", 16)],
)
def test_numbers(text, value):
    assert convert(Number(), text) == value


@pytest.mark.parametrize("text", ["", "x", "0", "-1", "nan", "inf", "2^", "^3", "2^x", "10^999", "-2^2", "-8^0.5"])
def test_what_is_no_positive_number(text):
    with pytest.raises(click.BadParameter, match="is not a positive number"):
        convert(Number(), text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("2^-2:2^1", [0.25, 0.5, 1, 2]),
        ("2^-2:2^2:2", [0.25, 1, 4]),
        ("2^-2:2^1:2", [0.25, 1]),
        ("2^0:2^1:0.5", [1, 2**0.5, 2]),
        ("10^-1:10^1", [0.1, 1, 10]),
        ("1e-2:100", [0.01, 0.1, 1, 10, 100]),
        ("2^3:2^3", [8]),
        ("1:4", [1, 2, 4]),
        ("1:2", [1, 2]),
        ("1:1", [1]),
        ("0.25:64:4", [0.25, 4, 64]),
        ("1:100", [1, 10, 100]),
        ("2^-1:4", [0.5, 1, 2, 4]),
        ("0.001:10^-1", [0.001, 0.01, 0.1]),
        ("3^-1:3", [1 / 3, 1, 3]),
        ("0.1,1,2^3", [0.1, 1, 8]),
        ("0.5", [0.5]),
    ],
)
def test_ranges(text, values):
    assert convert(NumberRange(), text) == pytest.approx(values, rel=1e-15)


def test_the_usual_range_has_21_values():
    values = convert(NumberRange(), "2^-15:2^5")
    assert values == [2.0**e for e in range(-15, 6)]


@pytest.mark.parametrize("text", ["", ",", "1,x", "0,1", "2^1:2^0", "2^1:3^4", "1:3", "4:1", "2:10", "2^1:10", "0:1"])
def test_what_is_no_range(text):
    with pytest.raises(
        click.BadParameter, match="is not a range: write its smaller and its larger end, both powers of 2"
    ):
        convert(NumberRange(), text)


@pytest.mark.parametrize("text", ["2^0:2^1:0", "2^0:2^1:1:1", "1^0:1^5", "0.5^1:0.5^2", ":", "1:", "-2:-1", "1:inf"])
def test_what_is_no_pair_of_ends(text):
    with pytest.raises(click.BadParameter, match="is not a range"):
        convert(NumberRange(), text)


def test_lists_keep_their_order_without_doubles():
    assert convert(CommaList(), "map, ndcg@10,map,,") == ["map", "ndcg@10"]
    with pytest.raises(click.BadParameter, match="empty"):
        convert(CommaList(), " , ")


def test_the_conventions_are_those_of_the_library():
    assert list(KNOWN_CONVENTIONS) == CONVENTIONS


def test_the_choices_are_those_of_the_library():
    assert CHOICES["loss"] == list(LOSSES)
    assert list(RULES_OF_CHOICE) == RULES


def test_names_with_either_dash():
    kind = Name(["per_query", "query-minmax"])
    assert [convert(kind, text) for text in ("per-query", "per_query", "query_minmax")] == [
        "per_query",
        "per_query",
        "query-minmax",
    ]
    with pytest.raises(click.BadParameter, match="'query' is not one of 'per_query', 'query-minmax'"):
        convert(kind, "query")
    kind = NameList(["per_query", "uniform"])
    assert convert(kind, "uniform, per-query,per_query") == ["uniform", "per_query"]
    with pytest.raises(click.BadParameter, match="'x' is not one of"):
        convert(kind, "uniform,x")


def test_a_folder_that_is_not_there_is_told_before_any_work(tmp_path):
    @click.command()
    @click.option("-o", type=OUTPUT_FILE)
    def command(o):
        click.echo(o)

    result = command_runner().invoke(command, ["-o", str(tmp_path / "absent" / "file")])
    assert result.exit_code == 2
    assert "is not a folder" in result.stderr
    assert command_runner().invoke(command, ["-o", "file"]).stdout == "file\n"


@pytest.mark.parametrize(
    ("name", "kind"), [("o.parquet", "Parquet"), ("o.PQ", "Parquet"), ("o.rsd", "a cache"), ("absent/o.pq", "Parquet")]
)
def test_text_is_not_written_under_the_name_of_a_binary_format(name, kind):
    @click.command()
    @click.option("-o", type=TEXT_FILE)
    def command(o):
        click.echo(o)

    result = command_runner().invoke(command, ["-o", name])
    assert result.exit_code == 2
    assert f"{name!r} would be text, not {kind}: name it .txt or .tsv." in result.stderr
    for other in ("o.txt", "o.tsv", "o.csv.gz", "parquet", "o"):
        assert command_runner().invoke(command, ["-o", other]).stdout == f"{other}\n"


@pytest.mark.parametrize("option", [["--qid", "query"], ["--ignore", "price"], ["--missing-values"], ["--zero-based"]])
def test_options_of_data_files_are_refused_where_none_is_read(ranksvm, folder, model, tmp_path, option):
    run, qrels = tmp_path / "ours.run", tmp_path / "test.qrels"
    ranksvm("predict", model, folder / "test.txt", "--format", "trec", "-o", run)
    ranksvm("convert", folder / "test.txt", qrels)
    for command in (
        ("evaluate", run, "--qrels", qrels),
        ("export", model, "--to", "json"),
        ("bias", run),
        ("info", model),
        ("info", run),
    ):
        assert f"Error: {option[0]} says how to read a data file" in ranksvm(*command, *option, code=2).stderr
    ranksvm("export", model, "--to", "json", "--data", folder / "train.txt", "--one-based")


def test_options_of_models_and_of_data_are_told_apart(ranksvm, folder, model, tmp_path):
    assert "--weights is for a model" in ranksvm("info", folder / "test.txt", "--weights", 3, code=2).stderr
    assert "--categorical lists features" in ranksvm("info", model, "--categorical", 1, code=2).stderr
    words = ("report", model, "--test", folder / "test.txt", "--correction", "holm", "-o", tmp_path / "report.html")
    assert "give --baseline too" in ranksvm(*words, code=2).stderr
