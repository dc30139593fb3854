"""Scores of retrievers (lexical, vectors, ...) as search engines normalize them before adding them up."""

import numpy as np

__all__ = ["NORMALIZERS", "normalized_scores"]

# Engine -> the normalizers that it has, by the names of `RetrieverScaler`.
NORMALIZERS = {"elasticsearch": ("minmax", "l2_norm", "none"), "opensearch": ("minmax", "l2_norm")}
# Elasticsearch treats scores that differ by less than this as equal, and does not divide by a norm below this.
ES_EPSILON = np.float32(1e-6)
# OpenSearch: what the lowest score becomes, so that it differs from the 0 of a document that was not returned.
OPENSEARCH_LOWEST = 0.001


def normalized_scores(X: np.ndarray, starts: np.ndarray, sizes: np.ndarray, engine: str, normalizer: str) -> np.ndarray:
    """Normalize the scores of each query and retriever over the documents that the retriever returned.

    Parameters
    ----------
    X : ndarray of float64, shape (n_rows, n_retrievers)
        Scores, query by query; NaN for documents that a retriever did not return.
    starts, sizes : ndarray of int, shape (n_queries,)
        First row and number of rows of each query.
    engine : {"elasticsearch", "opensearch"}
        The engine whose rules hold.
    normalizer : {"minmax", "l2_norm", "none"}
        One of the engine's normalizers.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_retrievers)
        What the engine multiplies by the weight of each retriever: 0 for a document that was not returned.

    Notes
    -----
    Elasticsearch's ``linear`` retriever (``MinMaxScoreNormalizer``, ``L2ScoreNormalizer``): scores of one retriever
    that are all equal become 1; scores whose norm is below 1e-6 stay as they are. OpenSearch's
    ``normalization-processor`` (``min_max``, ``l2``): scores that are all equal become 1; otherwise the lowest becomes
    .001.
    """
    returned = ~np.isnan(X)
    X = X.astype(np.float32).astype(np.float64)  # the engines store float32
    number = np.repeat(np.arange(len(starts)), sizes)
    if normalizer == "none":
        found = X
    elif normalizer == "minmax":
        low, high = (extreme.reduceat(X, starts, axis=0) for extreme in (np.fmin, np.fmax))
        width = (high - low).astype(np.float32)  # the engines compare widths and norms as float32
        equal = np.abs(width) < ES_EPSILON if engine == "elasticsearch" else width == 0.0
        found = (X - low[number]) / np.where(equal, 1.0, width)[number]
        found[equal[number]] = 1.0
        if engine == "opensearch":
            found[found.astype(np.float32) == 0.0] = OPENSEARCH_LOWEST
    else:
        norm = np.sqrt(np.add.reduceat(np.where(returned, X, 0.0) ** 2, starts, axis=0)).astype(np.float32)
        small = norm < ES_EPSILON if engine == "elasticsearch" else norm == 0.0
        found = X / np.where(small, 1.0, norm)[number]
    return np.where(returned, found, 0.0)
