# cython: language_level=3
"""The instruction set that the compiled loops run with, chosen once when the first of them is imported.

Every hot loop is compiled for each of `COMPILED`. The newest one that the processor has is taken, or the one that the
environment variable RANKSVM_INSTRUCTION_SET names. Results are equal up to round-off.
"""

import os

from ranksvm.exceptions import OptionError

cdef extern from "instruction_set.hpp" namespace "ranksvm":
    bint processor_has(int)
    bint kVariants

VARIABLE = "RANKSVM_INSTRUCTION_SET"
#: in ascending order, as the C++ enumeration has them
COMPILED = ("baseline", "avx2", "avx512") if kVariants else ("baseline",)


def available():
    """Names of the instruction sets that the package is compiled for and the processor has, in ascending order."""
    return tuple(name for number, name in enumerate(COMPILED) if processor_has(number))


def current():
    """Name of the instruction set in use."""
    return COMPILED[chosen]


def use(name):
    """Take another instruction set from now on, in all threads; for tests and measurements."""
    global chosen
    if name not in COMPILED:
        raise OptionError(f"no instruction set {name!r}: ranksvm is compiled for {', '.join(COMPILED)}")
    if name not in available():
        raise OptionError(f"this processor does not support the instruction set {name!r}, only {', '.join(available())}")
    chosen = COMPILED.index(name)


def _choose():
    name = os.environ.get(VARIABLE, "").strip()
    try:
        use(name or available()[-1])
    except OptionError as error:
        raise OptionError(f"environment variable {VARIABLE}: {error}") from None


_choose()
