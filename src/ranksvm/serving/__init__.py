"""A service that ranks, takes feedback, and learns from it: ``pip install 'ranksvm[serve]'``.

All events are written to a log (`store.Store`), in SQLite or PostgreSQL. The model is a function of that log: it
learns from the entries of the log in the order of their sequence numbers (`learning.Learning`). So any past model can
be rebuilt (`replay`).
"""

from ranksvm.exceptions import MissingDependencyError

try:
    import msgspec  # noqa: F401
except ImportError:
    raise MissingDependencyError("a learning service needs msgspec: pip install 'ranksvm[serve]'") from None
