"""Models in the formats of search engines, runtimes and programming languages; some of these are also read."""

from typing import TYPE_CHECKING

from ranksvm._util.lazy import lazy_names

if TYPE_CHECKING:
    from ranksvm.exporting.exporter import export
    from ranksvm.exporting.request import Export
else:
    __getattr__ = lazy_names(__name__, {"export": "ranksvm.exporting.exporter", "Export": "ranksvm.exporting.request"})

__all__ = ["Export", "export"]
