"""Metarank's events: the log and the features against the events themselves, and what is refused."""

import gzip
import json

import numpy as np
import pytest

from command_runner import command_runner
from ranksvm.cli import main
from ranksvm.clicks import ClickLog, position_bias, read_metarank
from ranksvm.exceptions import DataError, ParseError


def item(name, timestamp, **fields):
    named = [{"name": field, "value": value} for field, value in fields.items()]
    return {"event": "item", "id": "e", "timestamp": str(timestamp), "item": name, "fields": named}


def ranking(name, timestamp, *items, **fields):
    named = [{"name": field, "value": value} for field, value in fields.items()]
    shown = [one if isinstance(one, dict) else {"id": one} for one in items]
    return {"event": "ranking", "id": name, "timestamp": timestamp, "user": "u", "items": shown, "fields": named}


def interaction(name, ranking=None, timestamp=9000, type="click"):
    return {"event": "interaction", "id": "e", "ranking": ranking, "timestamp": timestamp, "type": type, "item": name}


EVENTS = [
    item("a", 1000, price=3, title="A", good=True, tags=["x"]),
    item("b", 1000, price=5.5),
    {"event": "user", "id": "e", "timestamp": "1000", "user": "u", "fields": []},
    ranking("r1", "2000", {"id": "b", "relevancy": 2.0}, {"id": "a", "relevancy": 1.0}, query="cat"),
    item("a", 2500, price=4),
    ranking("r2", "1970-01-01T00:00:03Z", "a", "b", "c", query="cat"),
    ranking("r3", 4000, {"id": "a", "label": 2}),
    interaction("a", "r1"),
    interaction("a", "r1", type="purchase"),
    interaction("c", "r2", type="purchase"),
    interaction("b"),
    interaction("c", "r1"),
    interaction("a", "r9"),
]


def write(path, events=EVENTS):
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def test_the_log_is_that_of_the_same_lists_and_clicks(tmp_path):
    found = read_metarank(write(tmp_path / "events.jsonl"))
    lists = [("r1", "cat", ["b", "a"]), ("r2", "cat", ["a", "b", "c"]), ("r3", "r3", ["a"])]
    same = ClickLog.from_events(lists, [("r1", "a"), ("r2", "c")])
    for name in ("pointers", "query", "query_ids", "document", "document_ids", "rank", "clicked"):
        np.testing.assert_array_equal(getattr(found.log, name), getattr(same, name))
    assert found.log.time.astype("datetime64[ms]").astype(int).tolist() == [2000] * 2 + [3000] * 3 + [4000]
    assert found.skipped == {
        "user events": 1,
        "interactions of other types": 0,
        "interactions without a ranking": 1,
        "interactions with an item that their ranking did not show": 2,
    }


def test_features_are_those_of_the_first_time_that_an_item_was_shown(tmp_path):
    data = read_metarank(write(tmp_path / "events.jsonl")).data
    assert data.feature_names == ("price", "relevancy", "good")
    assert list(zip(data.qid.tolist(), data.docid.tolist(), strict=True)) == [
        ("cat", "b"),
        ("cat", "a"),
        ("cat", "c"),
        ("r3", "a"),
    ]
    nan = np.nan
    np.testing.assert_array_equal(data.X, [[5.5, 2, nan], [3, 1, 1], [nan, nan, nan], [4, nan, 1]])
    np.testing.assert_array_equal(data.y, [nan, nan, nan, 2])
    log = read_metarank(tmp_path / "events.jsonl").log
    assert log.rows(data).tolist() == [0, 1, 1, 0, 2, 3]


def test_the_order_of_lines_does_not_matter(tmp_path):
    one = read_metarank(write(tmp_path / "events.jsonl"))
    other = read_metarank(write(tmp_path / "mixed.jsonl", EVENTS[::-1]))
    np.testing.assert_array_equal(other.data.docid, one.data.docid)
    columns = [other.data.feature_names.index(name) for name in one.data.feature_names]
    np.testing.assert_array_equal(other.data.X[:, columns], one.data.X)
    np.testing.assert_array_equal(other.log.clicked, one.log.clicked)


def test_impressions_are_in_the_order_of_time(tmp_path):
    events = [ranking("z", 1000, "a"), ranking("b", 3000, "c"), ranking("m", 2000, "b"), interaction("b", "m")]
    log = read_metarank(write(tmp_path / "events.jsonl", events)).log
    assert log.document_ids[log.document].tolist() == ["a", "b", "c"]
    assert log.clicked.tolist() == [False, True, False]


def test_queries_and_types_are_chosen(tmp_path):
    path = write(tmp_path / "events.jsonl")
    found = read_metarank(path, query=None, types=["purchase"])
    assert found.log.query_ids.tolist() == ["r1", "r2", "r3"]
    assert found.log.clicked.sum() == 2
    assert found.skipped["interactions of other types"] == 4
    assert read_metarank(path, types=["click"]).log.clicked.sum() == 1


def test_compressed_files_are_recognized(tmp_path):
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(gzip.compress(write(tmp_path / "events.jsonl").read_bytes()))
    assert repr(read_metarank(path).log) == repr(read_metarank(tmp_path / "events.jsonl").log)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DataError, match=r"events\.jsonl\.gz: .*"):
        read_metarank(path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"event": "item"', "the line is not JSON"),
        ("\xff", "the line is not JSON"),
        ("[1]", "'event' is one of item, user, ranking, interaction, got None"),
        ('{"event": "click"}', "got 'click'"),
        ('{"event": "ranking", "id": "r", "timestamp": 1}', "the ranking event has no 'items'"),
        ('{"event": "item", "item": "a"}', "the item event has no 'timestamp'"),
        ('{"event": "item", "item": "a", "timestamp": "now"}', "the item event is malformed"),
        ('{"event": "ranking", "id": "r", "timestamp": 1, "items": ["a"]}', "the ranking event is malformed"),
        ('{"event": "item", "item": "a", "timestamp": 1, "fields": [1]}', "the item event is malformed"),
        (json.dumps(EVENTS[3]), "an earlier ranking has the id 'r1'"),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, words):
    path = tmp_path / "events.jsonl"
    path.write_bytes(json.dumps(EVENTS[3]).encode() + b"\n\n" + line.encode("latin-1") + b"\n")
    with pytest.raises(ParseError, match=words) as found:
        read_metarank(path)
    assert str(found.value).startswith(f"{path}:3")


def test_a_file_without_lists_is_refused(tmp_path):
    with pytest.raises(DataError, match="no ranking events"):
        read_metarank(write(tmp_path / "events.jsonl", EVENTS[:3]))
    with pytest.raises(DataError, match="show no items"):
        read_metarank(write(tmp_path / "events.jsonl", [ranking("r", 1)]))
    with pytest.raises(DataError, match="impression 'r' shows document 'a' twice"):
        read_metarank(write(tmp_path / "events.jsonl", [ranking("r", 1, "a", "a")]))


def many(n_rankings=2000):
    """Events of two rankers, with users who look at rank r with probability 1 / r."""
    rng, events = np.random.default_rng(0), []
    for number in range(n_rankings):
        documents = [f"d{document}" for document in rng.permutation(5)]
        events.append(ranking(f"r{number}", 1000 + number, *documents, query=f"q{number % 20}"))
        looks = rng.random(5) < 1 / np.arange(1, 6)
        events += [interaction(name, f"r{number}") for name, look in zip(documents, looks, strict=True) if look]
    return events


def test_the_command_line_reads_events(tmp_path):
    path = write(tmp_path / "events.jsonl", many())
    result = command_runner().invoke(
        main, ["bias", str(path), "--method", "em", "-o", str(tmp_path / "bias.json"), "-q"]
    )
    assert result.exit_code == 0, result.output
    assert "2,000 impressions" in result.output
    bias = position_bias(read_metarank(path).log, "em")
    np.testing.assert_allclose(bias.propensity, 1 / np.arange(1, 6), atol=0.05)
