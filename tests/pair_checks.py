"""List pairs, however they are stored; several test modules use this."""

import numpy as np


def written_out(pairs):
    """(preferred row, other row, weight) of every pair, query by query, sorted."""
    rows = pairs.rows if pairs.rows is not None else np.arange(pairs.n_rows)
    found = [pairs.explicit(query) for query in range(pairs.n_queries)]
    i, j, weight = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.lexsort((weight, rows[j], rows[i]))
    return rows[i][order], rows[j][order], weight[order]
