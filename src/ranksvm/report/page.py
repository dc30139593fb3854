"""The page of a report: its sections in the template, with style sheet and script inside."""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

from ranksvm.exceptions import MissingDependencyError
from ranksvm.report.blocks import Section

if TYPE_CHECKING:
    import jinja2

__all__ = ["check_jinja", "page"]


def page(title: str, summary: Sequence[str], sections: Sequence[Section]) -> str:
    """The HTML of a report; everything that comes from data or users is escaped."""
    environment = _environment()
    style, script = (_file(name) for name in ("report.css", "report.js"))
    # the browser runs only this script, whatever the data contain
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html").render(
        title=title, summary=summary, sections=sections, style=style, script=script, script_hash=f"sha256-{digest}"
    )


def check_jinja() -> None:
    """Raise an error early if the package that fills the template is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise MissingDependencyError("a report needs jinja2: pip install 'ranksvm[report]'") from None


def _environment() -> "jinja2.Environment":
    check_jinja()
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _file(name: str) -> str:
    # the same line ends on every system, because the page has a hash of the script
    text = resources.files("ranksvm.report").joinpath("templates", name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")
