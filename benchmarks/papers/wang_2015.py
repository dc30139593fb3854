"""Wang et al., "SOLAR: scalable online learning algorithms for ranking", ACL 2015."""

from papers.contents import CURVES, NOT_HERE, Place, contents
from papers.items import Item, Paper
from papers.online_curves import FIGURE_2_DATA, figure_2
from papers.online_losses import losses
from papers.online_pass import PRINTED, PRINTED_BATCH, batch, online
from papers.papers import PAPERS

__all__ = ["PAPER"]

WEB = "HP, NP and TD of 2003 and 2004"
PLACES = (
    Place("Table 1", "data sets", "none", NOT_HERE),
    Place("Table 2", "cumulative NDCG of a pass", "`online`", f"{WEB}: {NOT_HERE}"),
    Place(
        "Table 3",
        "NDCG on the test parts",
        "`batch`",
        f"MQ2007, {WEB}, and the rows AdaRank, RankBoost and ListNet: {NOT_HERE}",
    ),
    Place("Fig. 2", "cumulative MAP of a pass, eight data sets, five learners", "`figure-2`", CURVES),
    Place("Fig. 3", "not known here", "none", CURVES),
    Place("Theorems 1, 3", "bounds on losses", "`losses`", "the printed formulas: we do not have their text"),
    Place("Lemma 4.1, theorems 2, 4", "bounds on NDCG and MAP", "none", "we do not have their text"),
    Place("supplement", "transfer of a model to other data", "none", "we do not have its text"),
)

PAPER = Paper(
    "wang-2015",
    PAPERS["wang-2015"],
    (
        contents(PLACES, ("table-1", "figure-3", "lemma-4.1", "theorem-2", "theorem-4")),
        Item("online", "Cumulative NDCG over one pass", online, (*PRINTED, "MQ2007-partial"), ("table-2",)),
        Item("figure-2", "Fig. 2: MAP of a pass so far", figure_2, FIGURE_2_DATA, ("fig-2",), draws=True),
        Item("batch", "One pass over the training parts of the folds", batch, tuple(PRINTED_BATCH), ("table-3",)),
        Item(
            "losses",
            "Losses and their bounds: theorems 1 and 3",
            losses,
            ("MQ2008",),
            ("theorem-1", "theorem-3"),
            draws=True,
        ),
    ),
)
