"""Earlier names of classes."""

import pytest

import ranksvm
from ranksvm.model_files import persistence


def test_the_committee_has_its_earlier_name_with_a_warning():
    with pytest.warns(DeprecationWarning, match="it is called PerceptronCommitteeRanker"):
        assert ranksvm.CommitteePerceptronRanker is ranksvm.PerceptronCommitteeRanker
    assert "CommitteePerceptronRanker" not in ranksvm.__all__


def test_model_files_of_the_earlier_name_load():
    assert persistence._class_named("CommitteePerceptronRanker") is ranksvm.PerceptronCommitteeRanker
