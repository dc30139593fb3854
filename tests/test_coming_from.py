"""docs/coming_from.md: the parameters and methods in its table exist, here and in the tools that are installed."""

import re

import pytest

from code_tables import DOCS
from ranksvm import AdditiveRankSVM, AdditiveRankSVMCV


def columns():
    """The cells of each column of the table, by its heading."""
    lines = (DOCS / "coming_from.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return {heading.strip("`"): cells for heading, *cells in zip(*rows, strict=True)}


def names(heading):
    """The names in a column."""
    found = re.findall(r"`(\w+)", " ".join(columns()[heading]))
    assert len(found) > 10
    return sorted(set(found) - {"AdditiveRankSVMCV"})


@pytest.mark.parametrize("name", names("AdditiveRankSVM"))
def test_our_names_exist(name):
    assert name in AdditiveRankSVM().get_params() or callable(getattr(AdditiveRankSVM, name))
    assert callable(AdditiveRankSVMCV)


@pytest.mark.parametrize("name", names("LightGBM"))
def test_the_names_of_lightgbm_exist(name):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    if name == "save_model":
        assert callable(lightgbm.Booster.save_model)
    elif name == "pred_contrib":
        assert "pred_contrib" in lightgbm.Booster.predict.__doc__
    else:
        assert name in lightgbm.basic._ConfigAliases._get_all_param_aliases()


@pytest.mark.parametrize("name", names("EBM"))
def test_the_names_of_ebm_exist(name):
    glassbox = pytest.importorskip("interpret.glassbox", reason="interpret is not installed")
    model = glassbox.ExplainableBoostingRegressor
    assert name in model().get_params() or callable(getattr(model, name))
