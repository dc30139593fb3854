"""The source of all kernels as one text, for a compiler that runs on the user's machine."""

import re
from functools import cache
from importlib import resources

from ranksvm.device.protocol import Variant

__all__ = ["LARGE_BLOCKS", "PARTS_OF_FITS", "kernel_source", "macros_of", "part_of"]

# Number of blocks with rows in shared memory that a multiprocessor runs at a time. On an H100, 3 were faster than 2 and
# 4, most of all for lists of up to 100 documents.
LARGE_BLOCKS = 3

# Part of kernels.hpp (a group of kernels that are compiled together) -> names of its kernels. Part 2 is not listed: it
# has all other kernels.
PARTS = {
    1: ("loss", "degrees", "laplacian", "laplacian_rows"),
    3: ("fused_loss", "fused_laplacian"),
    4: ("convert", "largest_values"),
    5: ("pair_values", "sparse_pair_values", "put_diagonal", "multiply_chosen"),
    6: ("read_values", "visit_others"),
    7: ("form_inner", "factorize_block", "divide_panel", "update_rest", "solve_forward", "solve_backward"),
    8: ("add_values", "sum_by_code"),
}
# Parts with the kernels that a fit launches.
PARTS_OF_FITS = (3, 1, 2)

_INCLUDE = re.compile(r'^#include "([a-z_]+\.hpp)"$', re.MULTILINE)


@cache
def kernel_source() -> str:
    """``_compiled/device/kernels.hpp`` with the text of each included file in place of its include, once per file.

    Returns
    -------
    str
        CUDA C++.
    """
    folder = resources.files("ranksvm._compiled").joinpath("device")
    seen: set[str] = set()

    def text_of(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        text = folder.joinpath(name).read_text(encoding="utf-8")
        return _INCLUDE.sub(lambda match: text_of(match[1]), text)

    return text_of("kernels.hpp")


def macros_of(variant: Variant, part: int) -> list[tuple[str, str]]:
    """The macros that ``kernels.hpp`` needs.

    Parameters
    ----------
    variant : Variant
        The variant of the data.
    part : int
        The part of the kernels.

    Returns
    -------
    list of (str, str)
        Their names and values.
    """
    of_variant = ("LISTED", int(variant.listed)), ("SPARSE", int(variant.sparse)), ("REAL", variant.real)
    macros = (*of_variant, ("PART", part), ("LARGE_BLOCKS", LARGE_BLOCKS))
    return [(f"RANKSVM_{name}", str(value)) for name, value in macros]


def part_of(kernel: str) -> int:
    """The part of the source that contains a kernel: RANKSVM_PART of kernels.hpp.

    Parameters
    ----------
    kernel : str
        Its name.

    Returns
    -------
    int
        Number of the part.
    """
    return next((part for part, names in PARTS.items() if kernel in names), 2)
