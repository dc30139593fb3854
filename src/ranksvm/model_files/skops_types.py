"""The names of the classes that skops has to trust in order to load a model of ranksvm."""

from ranksvm.model_files.registry import STORABLE

__all__ = ["skops_types"]


def skops_types() -> list[str]:
    """Names of the estimators and scalers of ranksvm, as ``trusted`` of skops and ``skops_trusted_types`` of MLflow.

    Apart from these classes, fitted models consist of types that skops trusts by itself: numbers, text, arrays and
    their containers. A loss or a kernel that is a function of your own has to be added to the list.

    Returns
    -------
    list of str
        Full names, in alphabetical order.

    Examples
    --------
    >>> from ranksvm import skops_types
    >>> "ranksvm.estimators.rank_svm.RankSVM" in skops_types()
    True
    """
    import ranksvm

    for name in ranksvm.__all__:
        getattr(ranksvm, name)  # public names are imported on first use, and their classes register then
    return sorted(f"{cls.__module__}.{cls.__qualname__}" for cls in STORABLE.values())
