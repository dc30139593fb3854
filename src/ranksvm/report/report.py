"""make_report, and the report that it returns."""

import base64
import hashlib
import html
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Literal

from numpy.typing import ArrayLike

from ranksvm._util import checks
from ranksvm._util.atomic_files import atomic_write
from ranksvm._util.environment import environment
from ranksvm._util.tables import CORRECTIONS
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, MissingDependencyError, OptionError
from ranksvm.metrics import Comparison, Evaluation, Metric
from ranksvm.plotting.figures import picture_formats
from ranksvm.report.blocks import Block, Code, Facts, Section, Text
from ranksvm.report.sections import (
    choice_section,
    curves_section,
    data_section,
    fit_section,
    metrics_section,
    queries_section,
    scores_section,
    summary,
    weights_section,
    worst_section,
)
from ranksvm.report.subject import Model, examine

if TYPE_CHECKING:
    import jinja2

__all__ = ["Report", "check_jinja", "make_report", "page"]

METRICS = ("ndcg@10", "ndcg@1", "ndcg@5", "map", "mrr", "pairwise_accuracy")


class Report:
    """A report on a model, as one HTML page.

    Parameters
    ----------
    html : str
        The page.
    evaluations : dict of str to Evaluation
        Name of each system -> its evaluation; the model is the first system.
    comparisons : list of Comparison
        The model against each baseline, metric by metric.

    Attributes
    ----------
    html, evaluations, comparisons
        As passed to the constructor.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> from ranksvm.report import make_report
    >>> report = make_report(RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid), data)
    >>> list(report.evaluations), report.html.startswith("<!DOCTYPE html>")
    (['model'], True)
    """

    def __init__(self, html: str, evaluations: dict[str, Evaluation], comparisons: list[Comparison]):
        self.html = html
        self.evaluations = evaluations
        self.comparisons = comparisons

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, atomically.

        Parameters
        ----------
        path : str or path-like
            The file.
        """
        with atomic_write(path) as file:
            file.write(self.html.encode())

    def _repr_html_(self) -> str:
        """The page in a frame of the notebook."""
        framed = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{framed}" title="Report" style="width: 100%; height: 50em; border: 0"></iframe>'

    def __repr__(self) -> str:
        names = ", ".join(self.evaluations)
        return f"Report({names}; {len(self.html.encode()):,} bytes)"


def make_report(
    model: Model,
    data: RankingData,
    *,
    train: RankingData | None = None,
    baselines: Mapping[str, Model | ArrayLike] | None = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    convention: str = "default",
    correction: Literal["holm", "bonferroni", "tukey", "none"] = "holm",
    n_worst: int = 10,
    name: str = "model",
    title: str | None = None,
    command: str | None = None,
    n_jobs: int | None = None,
) -> Report:
    """A report on a fitted model: one HTML page that opens offline in any browser and can be printed.

    It describes the data; the fit and what its certificate proves; the scores by which a model chose C; metrics with
    intervals and paired tests against baselines; NDCG@k curves; wins and losses by query; weights with intervals
    (or shapes) and importance; the worst queries, document by document; scores against labels; and how it was made. A
    section that does not apply says why. The same arguments give the same bytes.

    Parameters
    ----------
    model : estimator
        A fitted ranker, or a fitted Pipeline that ends with one.
    data : RankingData
        The data to measure it on, usually test data.
    train : RankingData, optional
        The data that it was trained on, for the intervals of the weights of a RankSVM or RankSVMCV.
    baselines : mapping of str to object, optional
        Systems to compare the model with: name -> a fitted model, or scores, one for each row of ``data``.
    metrics : str, Metric, or iterable of either, default NDCG@10, NDCG@1, NDCG@5, MAP, MRR and pairwise accuracy
        The metrics, as in `ranksvm.metrics.evaluate`; queries are compared by the first one.
    convention : str, default "default"
        As in `ranksvm.metrics.evaluate`.
    correction : {"holm", "bonferroni", "tukey", "none"}, default "holm"
        Correction of the p-values for the number of baselines, as in `ranksvm.metrics.compare_systems`.
    n_worst : int, default 10
        Number of queries that are explained document by document.
    name : str, default "model"
        Name of the model.
    title : str, optional
        Title of the page; None: "Report on" and the name.
    command : str, optional
        The command that made the report, to be shown in it.
    n_jobs : int or None, default None
        Number of threads of the fit to ``train``; None or -1: the number of processors.

    Returns
    -------
    Report
        The page, with ``save`` to write it; a notebook shows it.

    Raises
    ------
    MissingDependencyError
        When jinja2 or matplotlib is not installed.
    DataError
        When the data do not match the model, or ``train`` is not the data that it was trained on. (In
        the second case, a fit to ``train`` differs from the model by more than the certificates allow.)
    OptionError
        When an option has an invalid value.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> from ranksvm.report import make_report
    >>> data = make_ranking(n_queries=60, n_docs=10, n_features=5, random_state=0)
    >>> train, test = data.select(data.qid < 40), data.select(data.qid >= 40)
    >>> ranker = RankSVM(C=0.01).fit(train.X, train.y, qid=train.qid)
    >>> report = make_report(ranker, test, train=train, baselines={"first feature": test.X[:, 0]})
    >>> report.html.startswith("<!DOCTYPE html>"), len(report.html) < 1_000_000
    (True, True)
    """
    check_jinja()
    picture_formats()  # raises early if matplotlib is missing, which is needed only at the end
    checks.check(
        correction=checks.one_of(correction, tuple(CORRECTIONS)),
        n_worst=checks.count(n_worst, 0),
    )
    if not hasattr(model, "predict"):
        raise OptionError(f"model must be a fitted ranker, or a Pipeline that ends with one, got {model!r}.")
    if not isinstance(baselines, Mapping | None):
        raise OptionError(f"baselines must be a dict from names to models or scores, got a {type(baselines).__name__}.")
    if not isinstance(name, str) or not name:
        raise OptionError(f"name must be text that is not empty, got {name!r}.")
    for argument, given in (("data", data), ("train", train)):
        if not isinstance(given, RankingData) and not (argument == "train" and given is None):
            raise OptionError(f"{argument} must be RankingData(X, y, qid), got a {type(given).__name__}.")
    if data.n_rows == 0:
        raise DataError("there is nothing to report on: data has no rows.")
    subject = examine(
        model,
        data,
        name=name,
        train=train,
        baselines=baselines or {},
        metrics=metrics,
        convention=convention,
        correction=correction,
        n_jobs=n_jobs,
    )
    sections = [
        data_section(subject),
        fit_section(subject),
        choice_section(subject),
        metrics_section(subject),
        curves_section(subject),
        queries_section(subject),
        weights_section(subject),
        worst_section(subject, n_worst),
        scores_section(subject),
        _origin_section(command),
    ]
    text = page(title or f"Report on {name}", summary(subject), sections)
    return Report(text, subject.evaluations, subject.comparisons)


def _origin_section(command: str | None) -> Section:
    """The section with the command that made the report, and the versions of the software."""
    made: Block = Text("It was made in Python, by ranksvm.report.make_report.") if command is None else Code(command)
    return Section("origin", "How this report was made", [made, Facts(list(environment().items()), "Versions")])


def page(title: str, summary: Sequence[str], sections: Sequence[Section]) -> str:
    """The HTML of a report; everything that comes from data or users is escaped."""
    environment = _environment()
    style, script = (_file(name) for name in ("report.css", "report.js"))
    # the browser runs only this script, whatever the data contain
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html").render(
        title=title, summary=summary, sections=sections, style=style, script=script, script_hash=f"sha256-{digest}"
    )


def check_jinja() -> None:
    """Raise an error early if the package that fills the template is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise MissingDependencyError('a report needs jinja2: pip install "ranksvm[report]"') from None


def _environment() -> "jinja2.Environment":
    check_jinja()
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _file(name: str) -> str:
    # the same line ends on every system, because the page has a hash of the script
    text = resources.files("ranksvm.report").joinpath("templates", name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")
