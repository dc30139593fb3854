"""Xu et al., "Modeling the parameter interactions in ranking SVM with low-rank approximation", IEEE TKDE 31 (2019)."""

from papers.contents import CURVES, NOT_HERE, Place, contents
from papers.items import Item, Paper
from papers.papers import PAPERS
from papers.xu_2019.algorithms import fixed_steps
from papers.xu_2019.curves import learning_curves, sensitivity
from papers.xu_2019.dual_ranks import FIGURE_2_DATA, figure_2, table_6
from papers.xu_2019.errata import wrong_in_print
from papers.xu_2019.parameters import tables_7_and_8
from papers.xu_2019.published import QUALITY
from papers.xu_2019.quality import official_folds
from papers.xu_2019.statistics import table_1

__all__ = ["PAPER"]

BOTH = tuple(QUALITY)

PLACES = (
    Place("Table 1", "data sets", "`table-1`", "MQ2007 and MSLR-WEB10K: " + NOT_HERE),
    Place(
        "Tables 2, 4",
        "MAP and NDCG",
        "`quality`",
        "RankNet, ListNet, standard deviations and significance: " + NOT_HERE,
    ),
    Place("Tables 3, 5", "not known here", "none", NOT_HERE),
    Place("Table 6", "ranks of three queries", "`table-6`"),
    Place("Tables 7, 8", "MAP along K, and along gamma and lambda", "`table-7`", "all but the least and largest MAP"),
    Place("Fig. 2", "energy and rank of the dual variables", "`figure-2`", CURVES + ", but for one count of Fig. 2a"),
    Place("Fig. 4", "not known here", "`curves` draws learning curves", CURVES),
    Place("(9) to (11), (18), footnote 3", "updates", "`errata`, `algorithms`"),
)

PAPER = Paper(
    "xu-2019",
    PAPERS["xu-2019"],
    (
        contents(PLACES, ("table-3", "table-5", "figure-4")),
        Item("table-1", "Table 1: the data sets, and pairs per document", table_1, BOTH),
        Item(
            "figure-2", "Fig. 2: energy and rank of the dual variables", figure_2, FIGURE_2_DATA, ("fig-2",), draws=True
        ),
        Item(
            "quality",
            "MAP and NDCG of all models on the official folds",
            official_folds,
            BOTH,
            ("table-2", "table-4"),
            True,
        ),
        Item("sensitivity", "Quality along K, gamma and lambda", sensitivity, BOTH, long=True),
        Item("curves", "Learning curves of the algorithms", learning_curves, BOTH, long=True, draws=True),
        Item("table-6", "Table 6: ranks of the dual variables of three queries", table_6, ("OHSUMED",)),
        Item(
            "table-7",
            "Tables 7 and 8: MAP along K, and along gamma and lambda",
            tables_7_and_8,
            ("OHSUMED",),
            ("table-8",),
        ),
        Item("algorithms", "Algorithms 1 and 2 with steps as published", fixed_steps, BOTH, long=True),
        Item("errata", "What is wrong in print", wrong_in_print),
    ),
)
