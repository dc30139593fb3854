"""SIGTERM and Ctrl-C at the command line: both end it at once, with temporary files removed."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

__all__ = ["TerminatedError", "terminable", "woken_by_signals"]

# Seconds after a signal at which the main thread is woken; the second time is for a machine under load.
_WAKE_AFTER = (0.05, 0.5)


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
