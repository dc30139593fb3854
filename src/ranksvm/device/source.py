"""The source of all kernels as one text, for a compiler that runs where the package is used."""

import re
from functools import cache
from importlib import resources

__all__ = ["kernel_source"]

_INCLUDE = re.compile(r'^#include "([a-z_]+\.hpp)"$', re.MULTILINE)


@cache
def kernel_source() -> str:
    """``_compiled/device/kernels.hpp`` with everything that it includes in its place, each file once.

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
