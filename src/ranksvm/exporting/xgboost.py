"""Model files of XGBoost, in JSON: trees are written, the weights of a linear booster (gblinear) are read."""

import json
from typing import Any

import numpy as np

from ranksvm._util.text import feature_labels
from ranksvm.exceptions import ModelFileError, OptionError
from ranksvm.exporting.reading import LinearFile
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.text import float32_number, json_bytes
from ranksvm.exporting.trees import Leaf, Tree, expected_of, float32_trees, score_of_trees

__all__ = ["XGBOOST", "is_xgboost", "read_xgboost"]

# Version of XGBoost (released in 2023) that the files state; later versions also read them.
VERSION = [2, 0, 0]
# What XGBoost writes for the parent of a root.
NO_PARENT = 2**31 - 1


def write(request: Request) -> bytes:
    """The model file.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        JSON, as ``Booster.load_model`` reads it; the attributes of the booster have the self-test.
    """
    trees, offset = float32_trees(request, "XGBoost")
    n_features = str(request.scoring.n_features)
    document = {
        "learner": {
            "attributes": _attributes(request, offset),
            "feature_names": _names(request),
            "feature_types": [],
            "gradient_booster": {
                "model": {
                    "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                    "iteration_indptr": list(range(len(trees) + 1)),
                    "tree_info": [0] * len(trees),
                    "trees": [_tree(tree, number, n_features) for number, tree in enumerate(trees)],
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": "0E0",
                "boost_from_average": "0",
                "num_class": "0",
                "num_feature": n_features,
                "num_target": "1",
            },
            "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
        },
        "version": VERSION,
    }
    return json_bytes(document, indent=None)


def _attributes(request: Request, offset: float) -> dict[str, str]:
    return {
        "ranksvm.install": f"xgboost.Booster(model_file={request.file!r}).predict(xgboost.DMatrix(X))",
        "ranksvm.score": score_of_trees(request, offset),
        "ranksvm.test": json_bytes(expected_of(request, offset), indent=None).decode().strip(),
    }


def _names(request: Request) -> list[str]:
    """Names that XGBoost compares with names in the data; empty if the features have no names."""
    if request.names == list(feature_labels(request.scoring.n_features, None)):
        return []
    for name in request.names:
        if any(character in name for character in "[]<"):
            raise OptionError(f"{name!r} cannot name a feature of XGBoost: remove [, ] and < (names=..., or --names).")
    return request.names


def _tree(root: Tree, number: int, n_features: str) -> dict[str, Any]:
    """A tree: arrays with an entry for each node, parents first."""
    nodes, parents, children = [root], [NO_PARENT], [(-1, -1)]
    for place, node in enumerate(nodes):
        if not isinstance(node, Leaf):
            children[place] = len(nodes), len(nodes) + 1
            nodes += [node.below, node.above]
            parents += [place, place]
            children += [(-1, -1), (-1, -1)]
    zeros = [0] * len(nodes)
    return {
        "base_weights": [float32_number(node.value) for node in nodes],
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": [0 if isinstance(node, Leaf) else int(node.missing_below) for node in nodes],
        "id": number,
        "left_children": [left for left, _ in children],
        "loss_changes": [0.0] * len(nodes),
        "parents": parents,
        "right_children": [right for _, right in children],
        "split_conditions": [float32_number(node.value if isinstance(node, Leaf) else node.cut) for node in nodes],
        "split_indices": [0 if isinstance(node, Leaf) else node.column for node in nodes],
        "split_type": zeros,
        "sum_hessian": [float32_number(node.share) for node in nodes],
        "tree_param": {
            "num_deleted": "0",
            "num_feature": n_features,
            "num_nodes": str(len(nodes)),
            "size_leaf_vector": "1",
        },
    }


XGBOOST = Target("xgboost", ".json", write)


def is_xgboost(text: str) -> bool:
    """Whether a text is a model file of XGBoost, in JSON or in its binary form (UBJSON)."""
    return (text.startswith("{") and '"learner"' in text[:100_000]) or _is_binary(text)


def read_xgboost(path: str, text: str, n_features: int | None = None) -> LinearFile:
    """The weights of a linear booster.

    Parameters
    ----------
    path : str
        Name of the file, for messages.
    text : str
        Its content.
    n_features : int, optional
        Number of features, at least the number in the file; None: the number in the file.

    Returns
    -------
    LinearFile
        The model; its bias, which changes no ranking, is ignored.

    Raises
    ------
    ModelFileError
        When the text is not a model file of XGBoost, is damaged, or holds trees or several outputs.
    """
    if _is_binary(text):
        raise ModelFileError(
            f"{path}: this is a model of XGBoost in its binary form: write it as JSON "
            "(booster.save_model('model.json'))."
        )
    try:
        learner = json.loads(text)["learner"]
        booster, parameters = learner["gradient_booster"], learner["learner_model_param"]
        name, count = str(booster["name"]), int(parameters["num_feature"])
        n_outputs = max(int(parameters["num_class"]), int(parameters.get("num_target", 1)), 1)
        weights = np.asarray(booster["model"]["weights"], dtype=np.float64) if name == "gblinear" else np.empty(0)
        names = [str(each) for each in learner.get("feature_names", ())]
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise ModelFileError(
            f"{path}: it is damaged, or not a model of XGBoost ({type(error).__name__}: {error})."
        ) from None
    if name != "gblinear":
        raise ModelFileError(f"{path}: its booster is {name}, which is not linear: only gblinear is.")
    if n_outputs > 1:
        raise ModelFileError(f"{path}: it has {n_outputs} outputs, and a ranking needs one score.")
    if weights.shape != (count + 1,) or not np.isfinite(weights).all() or len(names) not in (0, count):
        raise ModelFileError(
            f"{path}: it has {weights.size} weights and {len(names)} names for {count} features and a bias: is it "
            "damaged?"
        )
    coef = np.zeros(count if n_features is None else n_features)
    if len(coef) < count:
        raise ModelFileError(f"{path}: it has {count} features, more than the {len(coef)} asked for.")
    coef[:count] = weights[:-1]
    return LinearFile(coef, "XGBoost gblinear", names if len(names) == len(coef) else None)


def _is_binary(text: str) -> bool:
    return text.startswith("{L\0")
