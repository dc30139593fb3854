"""Every test of compiled loops runs with each instruction set that the processor has."""

import pytest

from ranksvm._compiled import instruction_set


@pytest.fixture(scope="module", params=instruction_set.available(), autouse=True)
def loops(request):
    """The instruction set of this run."""
    before = instruction_set.current()
    instruction_set.use(request.param)
    yield request.param
    instruction_set.use(before)
