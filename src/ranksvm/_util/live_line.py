"""The live line of a terminal: what happens now, and a progress bar while the number of steps is known."""

import time
from typing import TYPE_CHECKING

from ranksvm._util.text import visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

__all__ = ["LiveLine", "terminal"]

# characters of the bar
BAR_WIDTH = 24


def terminal() -> "Console":
    """A console of rich that writes to stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


class LiveLine:
    """A line at the bottom of a terminal, which disappears in the end.

    Parameters
    ----------
    console : rich.console.Console
        The terminal, as `terminal` makes it.
    """

    def __init__(self, console: "Console"):
        from rich.live import Live
        from rich.spinner import Spinner

        self.text = ""
        self._console = console
        self._spinner = Spinner("dots" if console.encoding.startswith("utf") else "line")
        self._steps: tuple[int, int] | None = None
        self._unit = ""
        self._began = time.monotonic()
        self._live = Live(get_renderable=self._line, console=console, transient=True, refresh_per_second=10)
        self._live.start()

    def steps(self, done: int, total: int, unit: str = "") -> None:
        """Show a bar with the number of steps done, and their unit, if any."""
        if self._steps is None or done < self._steps[0]:
            self._began = time.monotonic()
        self._steps = (done, total)
        self._unit = f" {unit}" if unit else ""

    def no_steps(self) -> None:
        """Hide the bar."""
        self._steps = None

    def print(self, text: str) -> None:
        """Print a permanent line above."""
        self._console.print(visible(text), markup=False)

    def stop(self) -> None:
        """Remove the line."""
        self._live.stop()

    def _line(self) -> "Table":
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        cells: list[RenderableType] = [self._spinner]
        if self._steps is not None:
            done, total = self._steps
            counted = f"{done} of {total}{self._unit}{self._left(done, total)}"
            cells += [ProgressBar(total, done, width=BAR_WIDTH), Text(counted)]
        line = Table.grid(padding=(0, 1))
        for _ in cells:
            line.add_column(no_wrap=True)
        line.add_column(no_wrap=True, overflow="ellipsis")
        line.add_row(*cells, Text(visible(self.text), no_wrap=True, overflow="ellipsis"))
        return line

    def _left(self, done: int, total: int) -> str:
        """The time left, at the mean pace since the first step: fits at larger C take longer."""
        passed = time.monotonic() - self._began
        if done < 2 or done == total or passed < 2.0:
            return ""
        minutes, seconds = divmod(round(passed / (done - 1) * (total - done)), 60)
        return f", {minutes}:{seconds:02d} left"
