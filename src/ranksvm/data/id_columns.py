"""Column names that nearly always hold ids of queries: such a column is not taken for a feature."""

import re
from collections.abc import Iterable

__all__ = ["looks_like_qid"]

_NAMES = {"qid", "queryid", "groupid", "session", "sessionid"}


def looks_like_qid(names: Iterable[str]) -> list[str]:
    """The names that are, in any spelling, qid, query_id, group_id, session or session_id."""
    return [name for name in names if re.sub(r"[\W_]", "", str(name)).lower() in _NAMES]
