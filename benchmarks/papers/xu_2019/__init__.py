"""Xu et al., "Modeling the parameter interactions in ranking SVM with low-rank approximation", IEEE TKDE 31 (2019)."""

from papers.items import Item, Paper
from papers.papers import PAPERS
from papers.xu_2019.algorithms import fixed_steps
from papers.xu_2019.curves import learning_curves, sensitivity
from papers.xu_2019.dual_ranks import FIGURE_2_DATA, figure_2, table_6
from papers.xu_2019.errata import wrong_in_print
from papers.xu_2019.published import QUALITY
from papers.xu_2019.quality import official_folds
from papers.xu_2019.statistics import table_1

__all__ = ["PAPER"]

BOTH = tuple(QUALITY)

PAPER = Paper(
    "xu-2019",
    PAPERS["xu-2019"],
    (
        Item("table-1", "Table 1: the data sets, and pairs per document", table_1, BOTH),
        Item(
            "figure-2", "Fig. 2: energy and rank of the dual variables", figure_2, FIGURE_2_DATA, ("fig-2",), draws=True
        ),
        Item("quality", "MAP and NDCG of all models on the official folds", official_folds, BOTH, long=True),
        Item("sensitivity", "Quality along K, gamma and lambda", sensitivity, BOTH, long=True),
        Item("curves", "Learning curves of the algorithms", learning_curves, BOTH, long=True, draws=True),
        Item("table-6", "Table 6: ranks of the dual variables of three queries", table_6, ("OHSUMED",)),
        Item("algorithms", "Algorithms 1 and 2 with steps as published", fixed_steps, BOTH, long=True),
        Item("errata", "What is wrong in print", wrong_in_print),
    ),
)
