"""Additive models for ascending values of C; each fit starts from the previous ones."""

import copy
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ranksvm._util.checks import is_integer, overflow_refused
from ranksvm.additive.shapes import shapes_of, term_labels
from ranksvm.estimators.base.inputs import read_training_data, resolve_files
from ranksvm.estimators.base.ranker import additive_options
from ranksvm.estimators.path import c_values, solve_along
from ranksvm.exceptions import OptionError
from ranksvm.fits.additive import additive_problem, additive_training_set
from ranksvm.fits.training_set import TrainingArguments

__all__ = ["AdditivePath", "additive_path"]


@dataclass(frozen=True, eq=False)
class AdditivePath:
    """Additive models for several values of C.

    Attributes
    ----------
    Cs : ndarray of float64, shape (n_Cs,)
        The values, ascending.
    models : list of AdditiveRankSVM
        The fitted model for each value, with its certificate.
    spreads : ndarray of float64, shape (n_Cs, n_features + n_interactions)
        Standard deviation of each shape, then of each function of two features, over the training rows.
    names : list of str
        Names of the features, then of the functions of two features.

    Examples
    --------
    >>> from ranksvm import AdditiveRankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> path = AdditiveRankSVM().path(data.X, data.y, qid=data.qid, Cs=[0.1, 0.01])
    >>> path.Cs.tolist(), path.spreads.shape, path.models[0].C
    ([0.01, 0.1], (2, 4), 0.01)
    """

    Cs: np.ndarray
    models: list[Any]
    spreads: np.ndarray
    names: list[str]


def additive_path(estimator: Any, X: Any, y: Any, Cs: Any, default_cs: np.ndarray, **given: Any) -> AdditivePath:
    """The models of `AdditiveRankSVM.path`.

    Parameters
    ----------
    estimator : AdditiveRankSVM
        Has the hyper-parameters other than C.
    X, y, Cs
        As in `AdditiveRankSVM.path`.
    default_cs : ndarray
        The values of C if ``Cs`` is None.
    **given
        Other arguments of ``fit``.

    Returns
    -------
    AdditivePath
        The models.
    """
    options, values = additive_options(estimator), np.sort(c_values(default_cs if Cs is None else Cs))
    given_pairs = estimator.interactions
    if isinstance(given_pairs, str) or (is_integer(given_pairs) and given_pairs > 0):
        raise OptionError(f"interactions={given_pairs!r} are chosen for one C: for a path, list the pairs of features.")
    base = type(estimator)(**estimator.get_params(deep=False))
    with overflow_refused():
        arguments = TrainingArguments(X, y, **given)
        arguments = resolve_files(arguments, base.memory_limit, missing=True, categorical=base.categorical)
        arguments = read_training_data(base, arguments)
        base.censored_ = arguments.event is not None
        names = getattr(base, "feature_names_in_", None)
        data = additive_training_set(arguments, options, names)
        problem = additive_problem(data, options)
        if not is_integer(given_pairs):
            problem = problem.with_pairs(problem.listed_pairs())
        models, spreads = [], []
        for C, result in solve_along(problem, values):
            model, function = copy.copy(base).set_params(C=C), problem.function(result.w)
            model._assign_function(function)
            model.candidate_bounds_ = model.interaction_bounds_ = None
            model.monotone_ = data.levels.signs
            with warnings.catch_warnings():  # `solve_along` has warned already
                warnings.simplefilter("ignore", ConvergenceWarning)
                model._assign_outcome(problem.outcome(result))
            model.fitted_params_ = model._params_now()
            model.evals_result_ = {}
            shapes, cells = shapes_of(function, names, base.categories_)
            models.append(model)
            spreads.append([*(shape.spread for shape in shapes), *(each.spread for each in cells)])
        return AdditivePath(values, models, np.array(spreads), term_labels(function, names))
