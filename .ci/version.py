#!/usr/bin/env python3
"""Print the version of ranksvm, which src/ranksvm/__init__.py states, for meson.build."""

import re
from pathlib import Path

source = Path(__file__).parents[1] / "src" / "ranksvm" / "__init__.py"
print(re.search(r'^__version__ = "(.+)"$', source.read_text(encoding="utf-8"), re.MULTILINE)[1])
