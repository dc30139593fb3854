"""From exceptions and signals to one line on stderr and an exit code.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 or 143 interrupted. SIGTERM and Ctrl-C end the command at once, with
temporary files removed.
"""

import contextlib
import errno
import importlib
import itertools
import os
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from ranksvm._util.text import visible
from ranksvm.cli.output.tables import ANSWERED, print_json
from ranksvm.cli.terminal import say, standard_streams, takes_color
from ranksvm.exceptions import OptionError, RankSVMError

__all__ = [
    "EXIT_INTERRUPTED",
    "OneSentenceErrors",
    "Program",
    "TerminatedError",
    "command_line",
    "debug_option",
    "is_debugging",
    "terminable",
    "warn",
    "woken_by_signals",
]

# other exit codes are click's: 1 for a ClickException, 2 for a UsageError
EXIT_INTERRUPTED = 130  # 128 + SIGINT, the convention of shells
EXIT_TERMINATED = 143  # 128 + SIGTERM
# Seconds after a signal at which the main thread is woken; the second time is for a machine under load.
_WAKE_AFTER = (0.05, 0.5)
_DEBUG = "ranksvm.debug"
_ARGUMENTS = "ranksvm.arguments"
_Decorated = TypeVar("_Decorated", bound=Callable | click.Command)


def debug_option(command: _Decorated) -> _Decorated:
    """The option ``--debug``: errors are shown with their traceback."""
    return click.option(
        "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show the traceback of an error."
    )(command)


def _set_debug(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    root = ctx.find_root()
    root.meta[_DEBUG] = value or root.meta.get(_DEBUG, False)


def is_debugging(ctx: click.Context) -> bool:
    """Whether ``--debug`` was given, to the program or to a command."""
    return ctx.find_root().meta.get(_DEBUG, False)


def command_line(ctx: click.Context, program: str = "ranksvm") -> str:
    """The command line of this run, quoted for a shell; bytes that are not UTF-8 are replaced."""
    arguments = ctx.find_root().meta[_ARGUMENTS]
    return f"{program} {shlex.join(map(click.format_filename, arguments))}"


class OneSentenceErrors(click.Command):
    """A command that turns any exception into one sentence and an exit code."""

    def main(self, *args: Any, standalone_mode: bool = True, **kwargs: Any) -> Any:
        """Run the program: SIGTERM and Ctrl-C end it with one line and an exit code."""
        with standard_streams() if standalone_mode else contextlib.nullcontext(), _one_line_for_signals():
            return super().main(*args, standalone_mode=standalone_mode, **kwargs)  # type: ignore[call-overload]

    def make_context(self, info_name: str | None, args: list[str], *others: Any, **kwargs: Any) -> click.Context:
        """Parse the arguments; Ctrl-C ends this with one line, instead of click's "Aborted!"."""
        given = list(args)
        try:
            ctx = super().make_context(info_name, args, *others, **kwargs)
        except KeyboardInterrupt:
            _say("Interrupted: unfinished files were not kept.")
            sys.exit(EXIT_INTERRUPTED)
        except click.ClickException as error:
            _answer(error, given)
            raise
        ctx.meta[_ARGUMENTS] = given
        if not takes_color():
            ctx.color = False
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except (click.exceptions.Exit, click.Abort):
                raise
            except click.ClickException as error:
                _answer(error, ctx.meta[_ARGUMENTS], ctx)
                raise
            except KeyboardInterrupt:
                if is_debugging(ctx):
                    raise
                say("\nInterrupted: unfinished files were not kept.", err=True)
                ctx.exit(EXIT_INTERRUPTED)
            except Exception as error:
                if _is_broken_pipe(error):
                    raise
                click_error = _as_click_exception(error)
                _answer(click_error, ctx.meta[_ARGUMENTS], ctx)
                if is_debugging(ctx):
                    raise
                raise click_error from error


class Program(OneSentenceErrors, click.Group):
    """The group of all commands.

    Parameters
    ----------
    modules : mapping of str to str, optional
        Name of a command -> its module in ``ranksvm.cli.commands``, which is imported when the command is used.
    """

    def __init__(self, *args: Any, modules: Mapping[str, str] | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._modules = modules or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order of use, not in alphabetical order."""
        return [*self._modules, *(name for name in self.commands if name not in self._modules)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None if there is none."""
        known = cmd_name in self._modules or cmd_name in self.commands
        # for an unknown name all are imported, because click suggests similar ones
        for name in [cmd_name] if known else self._modules:
            if name not in self.commands:
                module = importlib.import_module(f"ranksvm.cli.commands.{self._modules[name]}")
                self.add_command(getattr(module, f"{name}_command"))
        return super().get_command(ctx, cmd_name)


@contextlib.contextmanager
def _one_line_for_signals() -> Iterator[None]:
    """At SIGTERM, or at Ctrl-C outside a command, exit with one line on stderr and the exit code used by shells."""
    try:
        with terminable():
            yield
    except TerminatedError:
        _say("Terminated: unfinished files were not kept.")
        sys.exit(EXIT_TERMINATED)
    except KeyboardInterrupt:
        _say("Interrupted: unfinished files were not kept.")
        sys.exit(EXIT_INTERRUPTED)


def _say(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed
        sys.stderr.write(f"\n{line}\n")
        sys.stderr.flush()


def _answer(error: click.ClickException, arguments: Sequence[str], ctx: click.Context | None = None) -> None:
    """Escape the message of an error for a terminal; with --json, print it unless a document was printed."""
    error.message = visible(error.message)  # type: ignore[misc]
    options = list(itertools.takewhile(lambda argument: argument != "--", arguments))
    if "--json" not in options or (ctx is not None and ANSWERED in ctx.meta):
        return
    command = None if ctx is None else ctx.invoked_subcommand
    with contextlib.suppress(OSError):  # standard output may be what failed
        print_json({"command": command, "error": error.format_message(), "exit_code": error.exit_code})


def _as_click_exception(error: Exception) -> click.ClickException:
    if isinstance(error, OptionError):
        return click.UsageError(str(error))
    if isinstance(error, RankSVMError):
        return click.ClickException(str(error))
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        # strerror does not end with a period; other messages may
        return click.ClickException(f"{where}{error.strerror or (error.args or ['failed'])[0]}".rstrip(".") + ".")
    if isinstance(error, MemoryError):
        return click.ClickException(f"Not enough memory. {error}".strip())
    return click.ClickException(
        f"{type(error).__name__}: {error}\nThis should not happen; please report it with the output of --debug."
    )


def _is_broken_pipe(error: Exception) -> bool:
    # click exits quietly when the reader of a pipe, such as `head`, has closed it
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def _show_warning(message: object, *_: object, **__: object) -> None:
    warn(str(message))


def warn(message: str) -> None:
    """Print one line on stderr, even with --quiet."""
    say(f"Warning: {message}", err=True, fg="yellow")


class TerminatedError(BaseException):
    """SIGTERM was received."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Context in which SIGTERM raises `TerminatedError` in the main thread, so that temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise_terminated)
    try:
        with woken_by_signals():
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise_terminated(*_: object) -> None:
    # one is enough: a second signal must not end the removal of files with a traceback
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise TerminatedError


@contextlib.contextmanager
def woken_by_signals() -> Iterator[None]:
    """Context in which a signal interrupts any blocking read; only for the main thread.

    Python's handlers run between two instructions of the interpreter. If a signal arrives after the last instruction
    and before the system call of a read, its handler runs only when the read returns, which may never happen. Therefore
    a thread is told of each signal, and sends another one, whose handler does nothing, to the main thread. This
    interrupts the blocking call, and Python runs the pending handlers.
    """
    if not hasattr(signal, "pthread_kill"):  # Windows
        yield
        return
    wake = signal.SIGURG  # nobody else uses it, and by default it is ignored
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    main = threading.get_ident()

    def watch() -> None:
        while number := os.read(reader, 1):
            if number[0] == wake:
                continue
            for seconds in _WAKE_AFTER:
                time.sleep(seconds)
                signal.pthread_kill(main, wake)

    before = signal.signal(wake, lambda *_: None)
    descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = threading.Thread(target=watch, name="ranksvm-signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(descriptor)
        os.close(writer)  # ends the thread
        thread.join()
        os.close(reader)
        signal.signal(wake, before)
