"""Model files of LightGBM: trees, and trees with linear leaves for the linear part of a model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ranksvm.exceptions import OptionError
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.tables import LOWEST
from ranksvm.exporting.text import exact, self_test_text
from ranksvm.exporting.trees import SMALLEST_SHARE, Leaf, Split, Tree, tree_of

__all__ = ["LIGHTGBM"]

# Codes for how a node treats missing values. If the feature has no interval for them, they count as 0, as in
# LightGBM itself.
_MISSING_IS_ZERO, _MISSING_GOES_LEFT = 0, 10
# Characters that LightGBM does not allow in the name of a feature.
_NOT_IN_NAMES = re.compile(r'[\s",:\[\]{}]')


@dataclass
class _Arrays:
    """A tree in the form of LightGBM: arrays with an entry for each node; a leaf as a child is ``~number``."""

    columns: list[int] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)
    decisions: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    leaves: list[float] = field(default_factory=list)
    leaf_counts: list[int] = field(default_factory=list)
    means: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def add(self, tree: Tree) -> int:
        """Add a tree; return the number by which its parent refers to it."""
        if isinstance(tree, Leaf):
            self.leaves.append(tree.value)
            self.leaf_counts.append(_count(tree))
            return ~(len(self.leaves) - 1)
        number = len(self.columns)
        self.columns.append(tree.column)
        self.thresholds.append(_threshold(tree.cut))
        self.decisions.append(_MISSING_GOES_LEFT if tree.missing else _MISSING_IS_ZERO)
        self.left.append(0)
        self.right.append(0)
        self.means.append(tree.value)
        self.counts.append(_count(tree))
        self.left[number] = self.add(tree.below)
        self.right[number] = self.add(tree.above)
        return number


def write(request: Request) -> bytes:
    """The model file.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        Text, as ``Booster(model_file=...)`` reads it; LightGBM ignores the self-test at its end.
    """
    function = request.unscaled()
    trees = [_text(tree_of(table)) for table in function.tables]
    linear = function.coef != 0.0
    for columns in [
        np.flatnonzero(linear & ~function.missing),
        *np.flatnonzero(linear & function.missing)[:, np.newaxis],
    ]:
        if len(columns):
            trees.append(_linear(columns.tolist(), function.coef, bool(function.missing[columns[0]])))
    if function.intercept != 0.0 or not trees:
        trees.append(_text(Split(0, LOWEST, False, Leaf(function.intercept), Leaf(function.intercept))))
    blocks = [f"Tree={number}\n{tree}\n\n" for number, tree in enumerate(trees)]
    n = request.scoring.n_features
    lines = [
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={n - 1}",
        "objective=regression",
        f"feature_names={' '.join(_names(request))}",
        f"feature_infos={' '.join(['[-inf:inf]'] * n)}",
        f"tree_sizes={' '.join(str(len(block.encode())) for block in blocks)}",
        "",
        "".join(blocks) + "end of trees",
        "",
        "feature_importances:",
        "",
        "parameters:",
        "end of parameters",
        "",
        f"# written by ranksvm; install: lightgbm.Booster(model_file={request.file!r}).predict(X)",
        f"# self-test: {self_test_text(request)}",
        "",
        "pandas_categorical:null",
        "",
    ]
    return "\n".join(lines).encode()


def _linear(columns: Sequence[int], coef: np.ndarray, missing: bool) -> str:
    """The tree of a linear function of features; if ``missing``, of one feature whose missing values count as 0."""
    tree = Split(columns[0], LOWEST, missing, Leaf(0.0), Leaf(0.0))
    terms = ([] if missing else columns), columns
    return _text(
        tree,
        "is_linear=1",
        "leaf_const=0 0",
        f"num_features={' '.join(str(len(each)) for each in terms)}",
        f"leaf_features={'  '.join(' '.join(map(str, each)) for each in terms)} ",
        f"leaf_coeff={'  '.join(' '.join(exact(coef[j]) for j in each) for each in terms)} ",
    )


def _text(tree: Tree, *linear: str) -> str:
    arrays = _Arrays()
    arrays.add(tree)
    n = len(arrays.leaves)
    in_leaves, in_nodes = (" ".join(map(str, each)) for each in (arrays.leaf_counts, arrays.counts))
    return "\n".join(
        [
            f"num_leaves={n}",
            "num_cat=0",
            f"split_feature={' '.join(map(str, arrays.columns))}",
            f"split_gain={' '.join(['0'] * (n - 1))}",
            f"threshold={' '.join(map(exact, arrays.thresholds))}",
            f"decision_type={' '.join(map(str, arrays.decisions))}",
            f"left_child={' '.join(map(str, arrays.left))}",
            f"right_child={' '.join(map(str, arrays.right))}",
            f"leaf_value={' '.join(map(exact, arrays.leaves))}",
            f"leaf_weight={in_leaves}",
            f"leaf_count={in_leaves}",
            f"internal_value={' '.join(map(exact, arrays.means))}",
            f"internal_weight={in_nodes}",
            f"internal_count={in_nodes}",
            *(linear or ["is_linear=0"]),
            "shrinkage=1",
            "",
        ]
    )


def _count(tree: Tree) -> int:
    """A number of rows for LightGBM, of which only ratios matter."""
    return round(tree.share / SMALLEST_SHARE)


def _threshold(cut: float) -> float:
    """The largest number below a cut: LightGBM compares ``x <= threshold``, and treats tiny numbers as 0.

    It is neither 0 nor subnormal, because some programs that read models of LightGBM refuse such numbers.
    """
    if cut == LOWEST:
        return LOWEST
    below, tiny = float(np.nextafter(cut, -np.inf)), float(np.finfo(np.float64).tiny)
    if abs(below) < tiny:
        return tiny if cut > 0.0 else -tiny
    return below


def _names(request: Request) -> list[str]:
    """The names as LightGBM writes them."""
    names: dict[str, str] = {}
    for name in request.names:
        first = names.setdefault(written := _NOT_IN_NAMES.sub("_", name), name)
        if first != name:
            raise OptionError(
                f"in LightGBM the features {first!r}, {name!r} would both be called {written!r}: rename one "
                "(names=..., or --names)."
            )
    return list(names)


LIGHTGBM = Target("lightgbm", ".txt", write)
