"""Tables and JSON on stdout."""

import json
import math

import numpy as np

from ranksvm._util.text import power
from ranksvm.cli.output.tables import (
    aligned,
    count,
    counted,
    number,
    print_bars,
    print_facts,
    print_json,
    print_table,
    seconds,
    weights,
)


def test_json_takes_numpy_and_has_no_nan(capsys):
    print_json(
        {
            "array": np.array([1.5, np.nan]),
            "scalar": np.float32(0.5),
            "count": np.int64(3),
            "flag": np.bool_(True),
            "infinite": float("inf"),
            "nested": [{"text": "ü", "none": None, 7: (1, 2)}],
            "other": object,
        }
    )
    document = json.loads(capsys.readouterr().out)
    assert document["array"] == [1.5, None]
    assert (document["scalar"], document["count"], document["flag"]) == (0.5, 3, True)
    assert document["infinite"] is None
    assert document["nested"] == [{"text": "ü", "none": None, "7": [1, 2]}]
    assert document["other"] == "<class 'object'>"


def test_tables_go_whole_into_a_pipe_and_take_text_as_it_is(capsys):
    long = "a/very/long/[bold]name/" * 5
    print_table(["file", "value"], [[long, "1"]], title="[red] title")
    print_facts([("key", long)], title="[blue]")
    out = capsys.readouterr().out
    assert out.count(long) == 2
    assert "[red] title" in out
    assert "[blue]" in out


def test_columns_move_together_before_cells_are_folded(capsys, monkeypatch):
    monkeypatch.setattr("ranksvm.cli.output.tables.sys.stdout.isatty", lambda: True)
    widths = []
    for width in (40, 22):
        monkeypatch.setenv("COLUMNS", str(width))
        print_table(["loss", "scaler", "C"], [["hinge", "query-minmax", "1"]])
        _, _, row = capsys.readouterr().out.splitlines()
        widths.append(len(row))
    assert widths == [5 + 3 + 12 + 3 + 1, 5 + 1 + 12 + 1 + 1]


def test_numbers_for_people():
    assert number(0.123456) == "0.1235"
    assert number(float("nan")) == number(None) == "-"
    assert count(np.int64(1234567)) == "1,234,567"
    assert counted(1, "iteration") == "1 iteration"
    assert counted(1000, "row") == "1,000 rows"
    assert aligned([1.23456, -0.5]) == ["1.2346", "-0.5000"]
    assert aligned([1.5e-5, 0]) == ["0.000015000", "0.000000000"]
    assert aligned([123456.7]) == ["123457"]
    assert aligned([40307977.1234, 40307975.5]) == ["40307977.12", "40307975.50"]
    assert aligned([0.3, 0.1 + 0.2]) == ["0.30000", "0.30000"]
    assert aligned([-1.5e30, 1e28, 0.0]) == ["-1.5000e+30", "1.0000e+28", "0"]
    assert aligned([1.23456e-20, -1e-21]) == ["1.2346e-20", "-1.0000e-21"]
    assert aligned([1e20, 1e20 + 1e15]) == ["1.0000000e+20", "1.0000100e+20"]
    assert aligned([math.inf, 1.0, math.nan]) == ["inf", "1.0000", "nan"]
    assert aligned([math.nan, 1e-20, -math.inf, 0.0]) == ["nan", "1.0000e-20", "-inf", "0"]
    assert aligned([math.nan, 123456.7]) == ["nan", "123457"]
    assert aligned([]) == []
    assert seconds(1.234) == "1.23 s"
    assert seconds(123.4) == "123 s"


def test_values_of_c_are_written_alike():
    assert weights([2**-15, 0.125, 1, 32]) == ["3.052e-05 = 2^-15", "0.125 = 2^-3", "1 = 2^0", "32 = 2^5"]
    assert weights([0.1, 1, 16]) == ["0.1", "1", "16"]
    assert weights([0.25]) == ["0.25 = 2^-2"]
    assert weights([1.0]) == ["1"]


def test_bars_have_the_lengths_of_the_values(capsys):
    print_bars(["name", "value"], [["a[b]", "2"], ["b", "1"], ["c", "0"], ["all", "3"]], [2.0, 1.0, 0.0, None], "title")
    title, _, _, *rows = capsys.readouterr().out.splitlines()
    assert title == "title"
    assert [row.count("█") for row in rows] == [24, 12, 0, 0]
    assert rows[0].startswith("a[b]")
    print_bars(["name", "value"], [["a", "3"], ["b", "-3"], ["c", "-1"]], [0.3, -0.3, -0.1])
    positive, negative, short = capsys.readouterr().out.splitlines()[2:]
    assert positive.count("█") == negative.count("█") == 12
    assert positive.index("█") == len(negative)
    assert len(short) == len(negative)
    assert short.count("█") == 4


def test_a_row_is_one_line_whatever_its_names_hold(capsys):
    print_bars(["name", "value"], [["a\nb\tc", "2"]], [2.0])
    print_table(["name"], [["a\nb\tc"]])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("a")]
    assert [row.split()[0] for row in rows] == ["a\\nb\\tc"] * 2


def test_c_in_short():
    assert [power(value) for value in (0.125, 1.0, 4.0, 0.1)] == ["2^-3", "1", "2^2", "0.1"]
