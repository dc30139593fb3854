"""The algorithms and claims of Jin & Lin (NPC 2014), and what ranksvm does instead."""

from papers.items import Context
from papers.results import Grid, Part

__all__ = ["algorithms"]

HEADER = ("in the paper", "in ranksvm", "why", "where")
ALGORITHMS = (
    (
        "Theorem 1: queries are independent; Definition 1: the set SV of violated pairs of a query",
        "the same; labels are part of the definition of a pair",
        "Definition 1 as printed lacks the condition y_i > y_j; equation (9) has it",
        "`_compiled/device/pairs.hpp`",
    ),
    (
        "(6) to (13): value, gradient and Hessian product from six sums of each document (alpha, beta, gamma)",
        "the same value and derivatives, in one pass, for four losses and with weights of pairs",
        "the six sums belong to the squared hinge without weights",
        "`_compiled/device/losses.hpp`",
    ),
    (
        "P-SWX (Algorithm 2): one block a query, one thread a document; a thread walks the sorted list while scores "
        "are within the margin",
        "a block takes whole queries, and all blocks share one that would take a block longer than the average; a "
        "thread visits the documents of lower and of higher labels, unsorted",
        "no sort is needed, and labels limit the visits. As printed, the loop ends at the first document whose label "
        "does not fit, and so misses pairs",
        "`_compiled/device/pairs.hpp`, `fused.hpp`, `losses.hpp`",
    ),
    (
        "lists longer than a block: not described",
        "threads stride; rows beyond the shared memory of a block are read again from the cache; a query of more than "
        "2^31 pairs is swept on the CPU",
        "MQ2008-list has a list of 1,831 documents, and a block of the card 1,024 threads",
        "`terms/device/dense_pass.py`, `terms/device/long_queries.py`",
    ),
    (
        "GPU-quicksorting of scores (Algorithm 3), bitonic sort below minsize = 64",
        "nothing is sorted on the GPU",
        "see above. Equal scores, as at w = 0, make the printed sort quadratic, and two of its lines lose the numbers "
        "of the documents",
        "none",
    ),
    (
        "workset: first and last row of each query",
        "the array `pointers`, and the first document of each level",
        "the same idea",
        "`terms/device/layout.py`",
    ),
    (
        "CUBLAS (Sgemv, Sgemm, Saxpy) in float32",
        "own kernels: rows may be float32, products and sums are float64 in a fixed order. Scores, pairs and gradient "
        "are one kernel, which reads rows from memory once",
        "a certificate needs float64, and equal bits in every run need a fixed order. Float32 is a likely cause of the "
        "lower accuracies of Table 3",
        "`_compiled/device/rows.hpp`, `fused.hpp`, `vectors.hpp`",
    ),
    (
        "TRON with its vectors and products on the GPU, until |gradient| <= 1e-5 |gradient at 0|",
        "Newton steps with a Hessian that the GPU builds, or TRON, until the duality gap meets `tol`; vectors with one "
        'number for each feature are on the processor. `stopping="gradient"` is the published rule',
        "few steps, and a proven distance from the optimum",
        "`solvers/`, `terms/device/term.py`, `_compiled/device/curvature.hpp`",
    ),
    (
        "Algorithm 1: radius Delta_0 = 0",
        "Delta_0 = |gradient at 0|",
        "a radius of 0 never moves",
        "`solvers/plain_tron.py`",
    ),
)
CLAIMS = (
    ("Table 1: data sets", "item `data`"),
    ("Table 2: up to 20 times faster than the processor; slower on MQ2008", "item `times`, and `benchmarks/gpu.py`"),
    ('Table 3: the "prediction accuracy" stays high', "item `accuracy`: it is that of the training data"),
    ("Fig. 1: the GPU is closer to the optimum at any time, but on MQ2008", "item `figure-1`"),
    ("several GPUs: future work", '`device=["cuda:0", "cuda:1"]` divides the queries (`terms/device/sum.py`)'),
)


def algorithms(context: Context) -> list[Part]:
    """The two tables, and the reason why there is no variant with the published algorithms."""
    return [
        "Jin & Lin were the first to fit a linear RankSVM on a GPU: the squared hinge, dense features, one card. "
        "Paths are below `src/ranksvm`. [On a GPU](../../../../docs/gpu.md) says how to use it, and what has been "
        "measured.",
        Grid("algorithms", HEADER, ALGORITHMS),
        "## Tables, figures and claims",
        Grid("claims", ("in the paper", "here"), CLAIMS),
        "## Why there is no published variant",
        "There is no option `gpu_published` (sums in float32, a sort, the early exit of P-SWX, TRON, eps = 1e-5). "
        "It would need a sort by query that handles ties, two sweeps over sorted lists, three products in float32, "
        "and their launches and tests: a second implementation of more than 150 lines, whose results would be less "
        "accurate, and whose printed form does not run. Its stopping rule and its steps are in "
        '`RankSVM(solver="tron", stopping="gradient", tol=1e-5, device="cuda")`.',
    ]
