"""Interrupts in a round of a backend."""

import os
import signal


class CountedRounds:
    """Counts the rounds of a backend, and sends Ctrl-C in the round with the number ``interrupt_in``."""

    def __init__(self, monkeypatch, backend):
        self.count, self.interrupt_in, plain = 0, None, backend.round

        def counted(own, jobs):
            self.count += 1
            if self.count == self.interrupt_in:
                os.kill(os.getpid(), signal.SIGINT)
            return plain(own, jobs)

        monkeypatch.setattr(backend, "round", counted)

    def interrupt_in_the_last(self):
        """Count from 0 again, and interrupt in the round that was the last one so far."""
        self.count, self.interrupt_in = 0, self.count
