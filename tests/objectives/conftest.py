"""Fixtures for objectives."""

import pytest


@pytest.fixture(params=["LU_COST", "CALL_COST"], ids=["by Cholesky", "by LU"])
def factorization(request, monkeypatch):
    """The form of the inverse on the host, whatever the number of documents and the lengths of lists."""
    monkeypatch.setattr(f"ranksvm.objectives.active_pairs.{request.param}", 1e300)
