"""Visiting all pairs of short lists or sweeping; and the sweep's forms, direct O(m k) and parting O(m log k).

python benchmarks/sweep_levels.py -o benchmarks/results/sweep_levels.md

`DIRECT_LIMIT` in ranksvm/data/pairs.py is the number of levels up to which the direct form is faster on this page.
`VISIT_LIMIT` is the number of pairs per document, depending on the number of levels, up to which it is faster to visit
all pairs than to sweep.
"""

import numpy as np

from _common import arguments, interleaved, page, publish, table
from ranksvm.data import ComparablePairs, Queries
from ranksvm.data.pairs import DIRECT_LIMIT, VISIT_LIMIT
from ranksvm.losses import HuberHinge, SquaredHinge
from ranksvm.plotting.figures import PALETTE

ROWS = 740_000
LEVELS = (2, 3, 5, 7, 8, 12, 15, 16, 23, 24, 31, 32, 39, 48, 64, 96, 128, 200, 400, 1000, 2000)
FORMS = {
    "direct": {"visit_limit": -1.0, "direct_limit": 10**9},
    "parting": {"visit_limit": -1.0, "direct_limit": 0},
}
SHORT_ROWS = 24_000
SHORT_LISTS = (5, 10, 20, 60, 120, 240, 480, 1000)
SHORT_LEVELS = (2, 3, 5, None)  # None: all labels of a query are distinct
WAYS = {"all pairs": {"visit_limit": np.inf}, "sweep": {"visit_limit": -1.0}}
OPERATIONS = ("evaluate", "product")
SEED = 0


def problem(n_rows: int, n_docs: int, k: int):
    """Generate queries, levels, and scores that are weakly correlated with them, so that many pairs are violating."""
    rng = np.random.default_rng(SEED)
    n_queries = max(1, n_rows // n_docs)
    n_rows = n_queries * n_docs
    queries = Queries.from_qid(np.repeat(np.arange(n_queries), n_docs), n_rows)
    # every level occurs in every query
    levels = np.argsort(rng.random((n_queries, n_docs)), axis=1) % k
    scores = (levels / k * 2.0 + rng.normal(size=levels.shape)).reshape(-1)
    return queries, levels.reshape(-1).astype(np.float64), scores, rng.normal(size=n_rows)


def actions(queries, y, scores, v):
    """Actions for both operations in both forms."""
    found = {}
    for form, options in FORMS.items():
        plain = ComparablePairs.from_labels(queries, y)
        pairs = ComparablePairs(plain.pointers, plain.rows, plain.levels, plain.n_levels, **options)
        loss = SquaredHinge(pairs)
        state = loss.new_state()
        gradient, out = np.empty(pairs.n_rows), np.empty(pairs.n_rows)

        def evaluate(loss=loss, state=state, gradient=gradient):
            return loss.evaluation(state, None)(0, queries.n_queries, scores, gradient)

        def product(loss=loss, state=state, out=out):
            loss.hessian(state)(0, queries.n_queries, v, out)

        found[f"evaluate {form}"], found[f"product {form}"] = evaluate, product
    return found


def measure(n_rows: int, n_docs: int, levels, repeats: int) -> list[tuple]:
    """Rows (documents per query, k, seconds of each form and operation) for each k."""
    rows = []
    for k in levels:
        work = actions(*problem(n_rows, n_docs, k))
        # an untimed run, which sorts the documents: all evaluations except the first find them sorted
        interleaved(work, 1)
        few = 2 if k >= 400 else repeats
        rows.append((n_docs, k, {name: values.min() for name, values in interleaved(work, few).items()}))
    return rows


def short_lists(n_rows: int, sizes, repeats: int) -> list[tuple]:
    """Rows (levels, documents per query, pairs per document, nanoseconds per document of each operation and way)."""
    rows = []
    for k in SHORT_LEVELS:
        for n_docs in sizes:
            queries, y, scores, v = problem(n_rows, n_docs, k or n_docs)
            # about as different as after a first step
            others = scores + np.random.default_rng(SEED + 1).normal(size=len(scores))
            work = {}
            plain = ComparablePairs.from_labels(queries, y)
            for way, options in WAYS.items():
                pairs = ComparablePairs(plain.pointers, plain.rows, plain.levels, plain.n_levels, **options)
                for name, loss in (("squared", SquaredHinge(pairs)), ("huber", HuberHinge(pairs))):
                    state, out = loss.new_state(), np.empty(pairs.n_rows)

                    def evaluate(loss=loss, state=state, out=out, vectors=(scores, others)):
                        for vector in vectors:
                            loss.evaluation(state, 0.1)(0, loss.pairs.n_queries, vector, out)

                    def product(loss=loss, state=state, out=out, v=v):
                        for _ in range(2):
                            loss.hessian(state)(0, loss.pairs.n_queries, v, out)

                    evaluate()
                    work[f"{name} {way}"], work[f"{name} product {way}"] = evaluate, product
            times = {name: 0.5e9 * found.min() / len(y) for name, found in interleaved(work, repeats).items()}
            rows.append((k, n_docs, plain.n_pairs / len(y), times))
    return rows


def total(times: dict[str, float], form: str) -> float:
    """The time of an evaluation and a product, of which an iteration needs about one each."""
    return times[f"evaluate {form}"] + times[f"product {form}"]


def switch_point(rows: list[tuple]) -> int:
    """The largest k for which the direct form is faster."""
    return max((k for _, k, times in rows if total(times, "direct") <= total(times, "parting")), default=0)


def plot(rows: list[tuple], path) -> None:
    """Plot seconds against k, for both forms and operations."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    k = [row[1] for row in rows]
    for form, color, marker in (("direct", PALETTE[0], "o"), ("parting", PALETTE[1], "s")):
        for operation, style in zip(OPERATIONS, ("-", "--"), strict=True):
            seconds = [row[2][f"{operation} {form}"] for row in rows]
            axes.loglog(k, seconds, style, color=color, marker=marker, markersize=4, label=f"{form}, {operation}")
    axes.axvline(DIRECT_LIMIT, color="gray", linewidth=0.8)
    axes.set_xlabel("levels k of a query")
    axes.set_ylabel("seconds, one thread")
    axes.set_title(f"The sweep over {ROWS:,} rows; gray: where the code switches", fontsize=10)
    axes.legend()
    figure.tight_layout()
    temporary = path.with_name(path.stem + ".part.png")
    figure.savefig(temporary, dpi=80)
    temporary.replace(path)
    plt.close(figure)


def short_section(smoke: bool) -> list[str]:
    """The table of short lists."""
    found = short_lists(400, (5, 20), 1) if smoke else short_lists(SHORT_ROWS, SHORT_LISTS, 5)
    columns = [f"{name} {way}" for name in ("squared", "squared product", "huber", "huber product") for way in WAYS]
    cells = [
        (k or "distinct", n_docs, f"{density:.0f}", *(f"{times[name]:.0f}" for name in columns))
        for k, n_docs, density, times in found
    ]
    return [
        "## Short lists: every pair visited, or swept",
        "Nanoseconds a document, one thread; two score vectors in turn, so that the order of one is a fair beginning "
        "for the other. The code visits all pairs up to "
        f"{VISIT_LIMIT:g} * (14 + min(levels, 40)) pairs a document.",
        table(["levels", "documents", "pairs a document", *columns], cells),
    ]


def report(options) -> str:
    """Make the page, and write the plot."""
    if options.smoke:
        main = measure(400, 40, (2, 5, 16), 1) + measure(400, 100, (50,), 1)
        short, long = measure(400, 20, (2, 5), 1), measure(400, 200, (2, 5), 1)
    else:
        main = measure(ROWS, 1000, [k for k in LEVELS if k <= 1000], 7) + measure(ROWS, 2000, (2000,), 2)
        short = measure(ROWS, 120, [k for k in LEVELS if k <= 64], 7)
        long = measure(ROWS, 4000, [k for k in LEVELS if 15 <= k <= 64], 7)
    parts = [
        "One evaluation of the squared hinge (value, gradient, violating pairs; documents sorted already, as in the "
        "iterations of a fit) and one product with its Hessian, one thread, least of 7 rounds (2 from 400 levels on).",
        f"Of the k measured, the direct form is the faster one up to {switch_point(short)} with 120 documents a query, "
        f"{switch_point(main)} with 1,000 and {switch_point(long)} with 4,000; the code switches after {DIRECT_LIMIT} "
        "levels (the direct form goes through levels and the end of them in vectors of 8, so it steps up at multiples "
        "of 8).",
    ]
    parts += short_section(options.smoke)
    titles = ("1,000 documents a query (2,000 for k = 2,000)", "120 documents a query", "4,000 documents a query")
    for title, rows in zip(titles, (main, short, long), strict=True):
        cells = []
        for _, k, times in rows:
            each = [f"{1000 * times[f'{operation} {form}']:.0f}" for operation in OPERATIONS for form in FORMS]
            cells.append((f"{k:,}", *each, f"{total(times, 'direct') / total(times, 'parting'):.2f}"))
        header = [
            "k",
            "evaluate, direct, ms",
            "evaluate, parting",
            "product, direct",
            "product, parting",
            "direct / parting",
        ]
        parts += [f"## {title}", table(header, cells)]
    if options.output is not None:
        path = options.output.with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        plot(main, path)
        parts.insert(2, f"![time against levels]({path.name})")
    return page(f"The sweep by levels, {ROWS:,} rows", "sweep_levels", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv)
    publish(report(options), options)


if __name__ == "__main__":
    main()
