"""Column names that nearly always hold ids or labels: such a column is not taken for a feature."""

import re
from collections.abc import Iterable

__all__ = ["CONTENTS", "reserved_column"]

# What a column holds that the parameter of this name takes.
CONTENTS = {"qid": "ids of queries", "docid": "ids of documents", "label": "labels"}
_NAMES = {
    "qid": "qid",
    "queryid": "qid",
    "groupid": "qid",
    "session": "qid",
    "sessionid": "qid",
    "docid": "docid",
    "document": "docid",
    "documentid": "docid",
    "label": "label",
    "relevance": "label",
    "grade": "label",
    "rel": "label",
}


def reserved_column(names: Iterable[str]) -> tuple[str, str] | None:
    """The first name that is that of ids or labels, in any spelling, and the parameter that takes such a column.

    ``Query-ID`` is spelled like ``query_id``. The parameters are the keys of `CONTENTS`; None if there is no such name.
    """
    for name in names:
        if (parameter := _NAMES.get(re.sub(r"[\W_]", "", str(name)).lower())) is not None:
            return name, parameter
    return None
