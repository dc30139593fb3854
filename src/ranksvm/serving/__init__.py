"""A service that ranks, takes feedback, and learns from it: ``pip install "ranksvm[serve]"``.

A log in SQLite or PostgreSQL (`store.Store`) has all events, which are rankings that were shown, and all entries, which
are feedback on events and changes by an operator. The model is a function of that log: it learns from the entries in
the order of their sequence numbers (`learning.Learning`). So any past model can be rebuilt (`replay`).
"""

from ranksvm.exceptions import MissingDependencyError

try:
    import msgspec  # noqa: F401
except ImportError:
    raise MissingDependencyError('a learning service needs msgspec: pip install "ranksvm[serve]"') from None
