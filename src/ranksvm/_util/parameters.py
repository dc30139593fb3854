"""The hyper-parameters: their constraints, the models that read them, and the options of the command that set them.

The library and the command line read this table. The help of the command needs it, so it imports nothing heavy:
`ranksvm._util.checks` evaluates the constraints.
"""

import functools
import math
from typing import Any, NamedTuple

__all__ = [
    "LOSSES",
    "PARAMETERS",
    "Constraint",
    "Count",
    "Flag",
    "NotNegative",
    "OneOf",
    "Parameter",
    "Positive",
    "Range",
    "Verbosity",
    "names_in",
    "option_names",
    "parameters_of",
]

# the losses, the default first
LOSSES = ("squared_hinge", "hinge", "huber", "logistic")
LOW_RANK = ("factorized", "regularized")
_LINEAR = ("linear", "additive")
_PAIRWISE = (*_LINEAR, "kernel")
_BATCH = (*_PAIRWISE, *LOW_RANK)
_ONLINE = ("online", "solar", "committee")


class Positive(NamedTuple):
    """A positive, finite number of at most ``maximum``, or one of some words."""

    words: tuple[str, ...] = ()
    maximum: float = math.inf


class NotNegative(NamedTuple):
    """A finite number, at least 0; the error message states ``reason``, if given: why it must not be negative."""

    reason: str = ""


class Count(NamedTuple):
    """A whole number from ``minimum``; or None, if that is allowed."""

    minimum: int = 1
    none: bool = False


class Range(NamedTuple):
    """A whole number from ``minimum`` to ``maximum``."""

    minimum: int
    maximum: int


class Flag(NamedTuple):
    """True or False."""


class Verbosity(NamedTuple):
    """A whole number from 0, or True or False."""


class OneOf(NamedTuple):
    """One of some names; or None, or a callable, if these are allowed."""

    names: tuple[str, ...]
    none: bool = False
    callables: bool = False


Constraint = Positive | NotNegative | Count | Range | Flag | Verbosity | OneOf


class Parameter(NamedTuple):
    """A row of `PARAMETERS`: a hyper-parameter of some models.

    If its name means something else in other models, there is another row for these.

    Parameters
    ----------
    name : str
        The name of the estimators' argument.
    models : tuple of str
        The models that read it; empty for an option of the command alone.
    constraint : Constraint or None
        The valid values; None if the check needs modules that this one does not import. A caller of `check_parameters`
        then passes a function for the check.
    section : str
        Section of the command's options: "pairs", "additive", "kernel", "low_rank" or "solver". It is "" if this row
        defines no option: another row does (``solver``), a command does so itself (C), or there is none (``stopping``).
    help : str
        Help of the option; "" if another row has the option.
    metavar : str or None
        Placeholder of the value in the help.
    default : object
        Default of the option; None: the default of the estimator.
    when : tuple of str and tuple of str, or None
        The name of another parameter, and the values of that parameter for which this one is read.
    tuned : str
        Name of the option of ``ranksvm tune`` that takes a list of values; "" if ``ranksvm tune`` takes one value.
    tuned_help : str
        Help of this option, if it differs from ``help``.
    heading : str
        Heading of its column in the table of ``ranksvm tune``; "" if it has no column.
    low_rank : tuple of object and str
        For a parameter that low-rank models lack: the only value that is valid with them, and the reason.
    command : bool
        Whether the command's option of this name sets the parameter.
    saved : bool
        Whether a settings file may hold it.
    """

    name: str
    models: tuple[str, ...]
    constraint: Constraint | None = None
    section: str = ""
    help: str = ""
    metavar: str | None = None
    default: Any = None
    when: tuple[str, tuple[str, ...]] | None = None
    tuned: str = ""
    tuned_help: str = ""
    heading: str = ""
    low_rank: tuple[Any, str] | None = None
    command: bool = True
    saved: bool = True


_NO_CHOICE = "the low-rank models have the hinge loss"
_OF_KERNELS = (None, "it is an option of kernels")
_BY_GAMMA = ("kernel", ("rbf", "poly", "laplacian"))
_BY_POLY = ("kernel", ("poly",))
_BY_APPROXIMATION = ("approximation", ("nystroem", "fourier"))

# in the order in which they are checked, and shown by --help
PARAMETERS = (
    Parameter("C", (*_BATCH, "solar"), Positive()),
    # -- loss and pairs
    Parameter(
        "loss",
        _PAIRWISE,
        section="pairs",
        help="Loss function of a pair.",
        default="squared_hinge",
        tuned="loss",
        heading="loss",
        low_rank=("hinge", _NO_CHOICE),
    ),
    Parameter(
        "huber_width",
        _PAIRWISE,
        Positive(),
        section="pairs",
        help="Width of the huber loss.",
        metavar="D",
        default=1.0,
        when=("loss", ("huber",)),
        tuned="huber_width",
        tuned_help="Widths of the huber loss, a list or range.",
        low_rank=(None, _NO_CHOICE),
    ),
    Parameter(
        "pair_selection",
        _PAIRWISE,
        OneOf(("all", "adjacent")),
        section="pairs",
        help="All pairs of documents of a query that have different labels, or only pairs of adjacent labels.",
        default="all",
        tuned="pair_selection",
        heading="pairs",
        low_rank=("all", "the low-rank models take all pairs"),
    ),
    Parameter(
        "pair_weighting",
        _PAIRWISE,
        OneOf(("uniform", "per_query", "label_gap", "gain_gap")),
        section="pairs",
        help="Weight of a pair: 1 (uniform), 1 over the number of pairs of its query (per_query), or the difference "
        "of its labels (label_gap) or of its gains (gain_gap).",
        default="uniform",
        tuned="pair_weighting",
        heading="weighting",
        low_rank=("uniform", "the low-rank models weight all pairs equally"),
    ),
    Parameter(
        "scaler",
        (),
        section="pairs",
        help="Scale features, per query or over all rows; saved with the model.",
        default="none",
        tuned="scaler",
        heading="scaler",
    ),
    Parameter(
        "monotone",
        _LINEAR,
        section="pairs",
        help="Features in which the score of a linear or additive model must increase or decrease: one word for all "
        "features, or a list by number (from 1) or name, 1=increasing,length=decreasing.",
        metavar="SIGNS",
        low_rank=(None, "the weights of low-rank models have no given signs"),
    ),
    # -- additive models
    Parameter(
        "model",
        (),
        OneOf(("linear", "additive")),
        section="additive",
        help="linear, or additive: a linear part, steps of each feature, and functions of two features.",
        default="linear",
        tuned="model",
        tuned_help="Models to compare, in addition to --kernel and --low-rank.",
    ),
    Parameter(
        "step_weight",
        ("additive",),
        NotNegative(),
        section="additive",
        help="Weight of the steps relative to the linear part, at least 0.  [default: 1; if C is chosen from a range: "
        "the best of 0, 0.5 and 2]",
        metavar="W",
        tuned="step_weight",
        tuned_help="Weights of the steps to compare, a list (0,1,4) or range.  [0,0.5,2]",
    ),
    Parameter(
        "max_bins",
        ("additive",),
        Range(2, 255),
        section="additive",
        help="Maximum number of levels of a feature.  [default: 32]",
        metavar="N",
    ),
    Parameter(
        "interactions",
        ("additive",),
        section="additive",
        help="Functions of two features: their number; auto, the best of 0, 8 and 32 by --metric; or pairs such as "
        "1:3,bm25:age, by number (from 1) or name.  [default: 0]",
        metavar="PAIRS",
        tuned="interactions",
        tuned_help="Numbers of functions of two features to compare (0,8,32), auto for 0, 8 and 32, or pairs as in "
        "train.  [0]",
    ),
    Parameter(
        "interaction_bins",
        ("additive",),
        Range(2, 16),
        section="additive",
        help="Maximum number of levels of a feature in a function of two.  [default: 8]",
        metavar="N",
    ),
    Parameter(
        "linear",
        ("additive",),
        Flag(),
        section="additive",
        help="Whether an additive model has a linear part.  [default: linear-part]",
    ),
    Parameter(
        "categorical",
        ("additive",),
        section="additive",
        help="Features whose values are categories, without order, and may be text: 1,5,kind, by number (from 1) or "
        "name.",
        metavar="FEATURE,...",
    ),
    # -- kernels
    Parameter(
        "kernel",
        ("kernel",),
        OneOf(("rbf", "poly", "linear", "laplacian", "cosine", "precomputed"), callables=True),
        section="kernel",
        help="Score by a kernel expansion instead of a linear function.",
        tuned="kernel",
        tuned_help="Also compare kernels.",
        low_rank=(None, "the low-rank models are linear: give --kernel or --low-rank"),
    ),
    Parameter(
        "gamma",
        ("kernel",),
        Positive(words=("scale", "auto")),
        section="kernel",
        help="For rbf, poly, laplacian: a number, scale, or auto.  [scale]  For --low-rank regularized: weight of the "
        "nuclear norms.  [1]",
        metavar="G",
        when=_BY_GAMMA,
        tuned="gammas",
        tuned_help="Values of gamma of a kernel to choose from.  [default: 1/16, 1/4, 1 and 4 times scale]",
    ),
    Parameter(
        "n_components",
        ("kernel",),
        Count(),
        section="kernel",
        help="Number of features of --approximation.  [1000]  For --low-rank factorized: the rank.  [5]",
        metavar="N",
        when=_BY_APPROXIMATION,
        tuned="n_components",
        tuned_help="Numbers of features of --approximation to compare.  [1000]",
    ),
    Parameter(
        "degree",
        ("kernel",),
        Count(),
        section="kernel",
        help="Degree of poly.  [default: 3]",
        metavar="D",
        when=_BY_POLY,
        low_rank=_OF_KERNELS,
    ),
    Parameter(
        "coef0",
        ("kernel",),
        NotNegative("below, 'poly' is not positive semidefinite"),
        section="kernel",
        help="Constant term of poly.  [default: 1]",
        metavar="X",
        when=_BY_POLY,
        low_rank=_OF_KERNELS,
    ),
    Parameter(
        "approximation",
        ("kernel",),
        OneOf(("nystroem", "fourier"), none=True),
        section="kernel",
        help="Approximate the kernel by features: kernel values with landmarks, or random features.",
        low_rank=_OF_KERNELS,
    ),
    Parameter(
        "landmarks",
        ("kernel",),
        OneOf(("uniform", "kmeans++", "leverage")),
        section="kernel",
        help="How the landmarks of nystroem are drawn.  [default: uniform]",
        when=("approximation", ("nystroem",)),
        low_rank=_OF_KERNELS,
    ),
    Parameter(
        "random_state",
        ("kernel", "factorized"),
        Count(0),
        section="kernel",
        help="Seed of the random numbers.",
        metavar="SEED",
        when=_BY_APPROXIMATION,
    ),
    Parameter(
        "memory_limit",
        ("linear", "additive", "kernel", "regularized"),
        section="kernel",
        help="Memory for the kernel, or for the matrices of --low-rank regularized: 4GB, 500MB. In `ranksvm train` "
        "also for the process that fits a linear or additive model: a larger TRAIN is read in passes.  [default: half "
        "of the free memory]",
        metavar="SIZE",
        saved=False,
    ),
    Parameter(
        "kernel_dtype",
        ("kernel",),
        OneOf(("float32", "float64")),
        section="kernel",
        help="Type of the stored kernel values.  [default: float32]",
        low_rank=_OF_KERNELS,
    ),
    # -- models of low rank
    Parameter(
        "low_rank",
        (),
        OneOf(LOW_RANK),
        section="low_rank",
        help="Learn dual variables of low rank for each query, with the hinge loss. factorized: as inner products of "
        "vectors of --n-components entries; regularized: with a penalty on nuclear norms, of weight --gamma.",
        tuned="low_rank",
        tuned_help="Also compare low-rank models.",
    ),
    Parameter(
        "n_components",
        ("factorized",),
        Count(),
        section="low_rank",
        metavar="N",
        tuned="rank",
        tuned_help="For factorized: ranks to compare.  [5]",
    ),
    Parameter(
        "gamma",
        ("regularized",),
        NotNegative(),
        section="low_rank",
        tuned="gamma",
        tuned_help="For regularized: weights of the nuclear norms to compare.  [1]",
    ),
    Parameter(
        "lam",
        ("regularized",),
        Positive(),
        section="low_rank",
        help="For regularized: weight of the distance to the low-rank matrices.  [default: 1]",
        metavar="L",
        tuned="lam",
        tuned_help="For regularized: weights of the distance to the low-rank matrices to compare.  [1]",
    ),
    Parameter("solver", ("regularized",), OneOf(("splitting", "alternating")), command=False),
    Parameter(
        "learning_rate",
        ("factorized",),
        Positive(words=("auto",)),
        section="low_rank",
        help="For factorized: a fixed step size, or auto for line searches.  [auto]",
        metavar="R",
    ),
    Parameter("learning_rate", ("regularized",), Positive(words=("auto",)), command=False),
    Parameter(
        "init",
        ("factorized",),
        OneOf(("scaled", "uniform")),
        section="low_rank",
        help="For factorized: random initial factors. scaled: multiplied by the number that gives the lowest "
        "objective; uniform: between 0 and their upper bound, not scaled.  [scaled]",
    ),
    Parameter(
        "max_epochs",
        ("factorized",),
        Count(),
        section="low_rank",
        help="For factorized: limit of epochs.  [default: 1000]",
        metavar="N",
    ),
    Parameter(
        "early_stopping_rounds",
        ("factorized",),
        Count(none=True),
        section="low_rank",
        help="For factorized: stop after N epochs without a better --metric on --valid, and keep the best epoch.",
        metavar="N",
    ),
    # -- solver
    Parameter(
        "solver",
        (),
        OneOf(("auto", "newton", "tron", "dual", "direct")),
        section="solver",
        help="How the problem is solved; auto chooses by cost. dual is for linear models only, direct for linear and "
        "kernel models.",
        default="auto",
        low_rank=("auto", "the command fits the low-rank models by their default solvers"),
    ),
    Parameter("solver", ("linear",), OneOf(("auto", "newton", "tron", "dual", "direct"))),
    Parameter("solver", ("kernel",), OneOf(("auto", "newton", "direct", "tron"))),
    Parameter("solver", ("additive",), OneOf(("auto", "newton", "tron"))),
    Parameter("stopping", ("linear", "kernel"), OneOf(("gap", "gradient"))),
    Parameter(
        "tol",
        _BATCH,
        Positive(),
        section="solver",
        help="Stop when the relative duality gap is below this.",
        default=1e-4,
    ),
    Parameter(
        "max_iter",
        (*_PAIRWISE, "regularized"),
        Count(),
        section="solver",
        metavar="N",
        help="Limit of iterations.  [default: the solver's]",
    ),
    Parameter("device", _PAIRWISE),
    Parameter("n_jobs", _BATCH),
    Parameter("warm_start", _BATCH, Flag(), command=False),
    Parameter("keep_on_interrupt", _BATCH, Flag()),
    Parameter("verbose", (*_BATCH, *_ONLINE), Verbosity(), command=False),
    # -- online rankers
    Parameter("order", ("solar",), Range(1, 2)),
    Parameter("n_passes", _ONLINE, Count()),
    Parameter("random_state", _ONLINE),
    Parameter("average", ("online", "solar"), Flag()),
    Parameter("shuffle_pairs", _ONLINE, Flag()),
    Parameter("n_experts", ("committee",), Count()),
    Parameter("gamma", ("solar",), Positive()),
    Parameter("covariance", ("solar",), OneOf(("full", "diagonal"))),
    Parameter("decay", ("solar",), Positive(maximum=1.0)),
)


@functools.cache
def parameters_of(model: str) -> tuple[Parameter, ...]:
    """The parameters that a model reads."""
    return tuple(each for each in PARAMETERS if model in each.models)


@functools.cache
def option_names(model: str) -> tuple[str, ...]:
    """The parameters of a model, other than C, that options of the command set."""
    return tuple(each.name for each in parameters_of(model) if each.command and each.name != "C")


@functools.cache
def names_in(section: str) -> tuple[str, ...]:
    """The parameters in a section of the command's options."""
    return tuple(each.name for each in PARAMETERS if each.section == section)
