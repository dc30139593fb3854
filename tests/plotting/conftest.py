"""Draw figures without a display, and close them after each test."""

import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    from matplotlib import pyplot

    yield
    pyplot.close("all")
