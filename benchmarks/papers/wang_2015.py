"""Wang et al., "SOLAR: scalable online learning algorithms for ranking", ACL 2015."""

from papers.items import Item, Paper
from papers.online_losses import losses
from papers.online_pass import PRINTED, PRINTED_BATCH, batch, online
from papers.papers import PAPERS

__all__ = ["PAPER"]

PAPER = Paper(
    "wang-2015",
    PAPERS["wang-2015"],
    (
        Item("online", "Cumulative NDCG over one pass", online, (*PRINTED, "MQ2007-partial")),
        Item("batch", "One pass over the training parts of the folds", batch, tuple(PRINTED_BATCH)),
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
