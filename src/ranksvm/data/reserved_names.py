"""Column names that nearly always hold ids or labels: such a column is not used as a feature."""

import re
from collections.abc import Iterable

__all__ = ["CONTENTS", "reserved_column"]

# Parameter -> contents of the column that it takes.
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
    """The first name that usually means ids or labels, in any spelling, and the parameter that takes such a column.

    ``Query-ID`` counts as ``query_id``. The parameters are the keys of `CONTENTS`; None if there is no such name.
    """
    for name in names:
        if (parameter := _NAMES.get(re.sub(r"[\W_]", "", str(name)).lower())) is not None:
            return name, parameter
    return None
