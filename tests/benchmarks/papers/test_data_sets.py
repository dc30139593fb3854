"""Where data sets are found, and what is said where one is missing."""

import gzip
import pickle

import pytest

from papers.data_sets import DATA_SETS, Sources, default_folder
from ranksvm.exceptions import DataError


def test_parts_have_the_width_of_the_training_part(tmp_path):
    fold = tmp_path / "MQ2008" / "Fold1"
    fold.mkdir(parents=True)
    (fold / "train.txt").write_text("1 qid:1 1:1 5:1\n0 qid:1 2:1\n")
    with gzip.open(fold / "vali.txt.gz", "wt") as file:
        file.write("1 qid:2 1:1\n0 qid:2 2:1\n")
    (fold / "test.txt").write_text("1 qid:3 1:1\n0 qid:3 2:1\n")
    parts = Sources(tmp_path).parts("MQ2008")
    assert [part.n_features for part in parts] == [5, 5, 5]


def test_a_part_that_is_missing_is_named(tiny, tmp_path):
    fold = tmp_path / "OHSUMED" / "Fold1"
    fold.mkdir(parents=True)
    (fold / "train.txt").write_text("1 qid:1 1:1\n0 qid:1 2:1\n")
    with pytest.raises(DataError, match=r"Fold1.*vali\.txt.* is missing"):
        Sources(tmp_path).parts("OHSUMED")


def test_the_part_of_mq2007_stands_for_it_only_where_it_is_missing(tmp_path):
    def put(name):
        place = tmp_path / name / "Fold1"
        place.mkdir(parents=True)
        (place / "train.txt").write_text("1 qid:1 1:1\n0 qid:1 2:1\n")

    wanted = ("MQ2007", "MQ2007-partial", "MQ2008")
    put("MQ2007-partial")
    sources = Sources(tmp_path)
    assert sources.here(wanted) == ["MQ2007-partial"]
    # nobody is told to get what only we have
    assert sources.missing(wanted) == ["MQ2007", "MQ2008"]
    put("MQ2007")
    assert sources.here(wanted) == ["MQ2007"]
    assert sources.missing(wanted) == ["MQ2008"]


def test_folds_are_those_that_are_there(tiny):
    assert Sources(tiny).folds("MQ2008") == [1, 2]
    assert Sources(tiny).folds("MSLR-WEB30K") == []


@pytest.mark.parametrize("name", [name for name in DATA_SETS if name != "MQ2007-partial"])
def test_instructions_say_what_to_get_from_where_and_where_to_put_it(name, tmp_path):
    said = Sources(tmp_path).instructions(name)
    assert "https://" in said
    assert f"DIR/{name}/Fold1/train.txt" in said


def test_the_folder_is_that_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKSVM_DATA", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("RANKSVM_DATA")
    assert str(default_folder()) == "data"


def test_sources_travel_to_other_processes(tiny):
    parts_of = pickle.loads(pickle.dumps(Sources(tiny).parts))
    assert parts_of("MQ2008", 2).train.n_rows == Sources(tiny).read("MQ2008", 2).n_rows
