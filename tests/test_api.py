"""The names of the package, loaded on first use."""

import pytest

import ranksvm


def test_every_name_that_dir_shows_is_there():
    names = dir(ranksvm)
    assert {"data", "exceptions", "metrics", "model_selection", *ranksvm.__all__} <= set(names)
    for name in names:
        assert getattr(ranksvm, name) is not None


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="module 'ranksvm' has no attribute 'ranker'"):
        ranksvm.ranker  # noqa: B018


def test_names_that_are_imported_on_first_use_are_listed():
    import ranksvm.analysis

    assert sorted(ranksvm.analysis.__all__) == dir(ranksvm.analysis)
