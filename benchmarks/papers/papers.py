"""The papers by name; the module of a paper is imported only when it is needed."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from papers.items import Paper

__all__ = ["PAPERS", "paper"]

PAPERS = {
    "lee-lin-2014": "Lee & Lin, Large-scale linear RankSVM, Neural Computation 26 (2014)",
    "kuo-lee-lin-2014": "Kuo, Lee & Lin, Large-scale kernel RankSVM, SDM 2014",
    "xu-2019": "Xu et al., Modeling the parameter interactions in ranking SVM with low-rank approximation, TKDE 2019",
    "wang-2015": "Wang et al., SOLAR: scalable online learning algorithms for ranking, ACL 2015",
    "jin-lin-2014": "Jin & Lin, RankSVM on a GPU, NPC 2014",
}


def paper(name: str) -> "Paper":
    """A paper with its items.

    Parameters
    ----------
    name : str
        One of `PAPERS`.

    Returns
    -------
    Paper
        The paper.
    """
    return importlib.import_module(f"papers.{name.replace('-', '_')}").PAPER
