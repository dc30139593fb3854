"""ONNX: a graph of plain operators, and of trees for an additive model.

The input is the features of any number of documents, the output their scores, both in float32. The graph computes in
float64, because positive and negative terms of kernel models cancel; rounding the final scores does not reverse the
order of two documents. Only the sum of the trees is in float32.
"""

import json
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ranksvm.exceptions import MissingDependencyError, OptionError
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.scoring import Additive, Fourier, KernelSum, Linear, QueryScaling, Scaling
from ranksvm.exporting.tables import Table
from ranksvm.exporting.text import NO_RETRIEVERS
from ranksvm.exporting.trees import Leaf, Tree, float32_function, tree_of

if TYPE_CHECKING:
    from onnx import TensorProto

__all__ = ["ONNX"]

# Version of the operators, which onnxruntime 1.10 (2021) and later read. In this version, the axes of ReduceMin,
# ReduceMax and ReduceMean are attributes.
OPSET = 15
# Version of the operators of ai.onnx.ml; it has trees with float64 thresholds.
ML_OPSET = 3
IR_VERSION = 8
# A note says so if float32 changes scores of the self-test by more than this part of their range.
LOST_DIGITS = 1e-3


class _Graph:
    """Nodes and constants of a graph under construction."""

    def __init__(self, helper: ModuleType, numpy_helper: ModuleType):
        self.helper, self.numpy_helper = helper, numpy_helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: ArrayLike, dtype: DTypeLike = np.float64) -> str:
        """Add a constant tensor; return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def __call__(self, operator: str, *inputs: str, output: str | None = None, **attributes: object) -> str:
        """Add an operator; return the name of its result."""
        name = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, list(inputs), [name], **attributes))
        return name


def write(request: Request) -> bytes:
    """The model.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        Protocol buffers; input "features" of shape (documents, features), output "scores" of shape (documents,). With a
        per-query scaler the documents are those of one query.
    """
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise MissingDependencyError('exporting to ONNX needs onnx: pip install "ranksvm[onnx]".') from error

    graph = _Graph(helper, numpy_helper)
    X = graph("Cast", "features", to=TensorProto.DOUBLE)
    Z = _scaled(graph, X, request.scoring.scaling)
    function, operators = request.scoring.function, {"": OPSET}
    if isinstance(function, Linear):
        scores = graph("MatMul", Z, graph.constant(function.coef[:, np.newaxis]))
    elif isinstance(function, Additive):
        operators["ai.onnx.ml"] = ML_OPSET
        # with unscaled features and cuts, each value is on the same side of a cut as in training
        if request.query_scaling is None:
            Z, function = X, float32_function(request, "ONNX")
        scores = _additive(graph, Z, function, TensorProto)
    elif isinstance(function, Fourier):
        scores = _fourier(graph, Z, function, TensorProto)
    else:
        scores = graph("MatMul", _kernel(graph, Z, function), graph.constant(function.coef[:, np.newaxis]))
    _note_lost_digits(request)
    flat = graph("Reshape", scores, graph.constant([-1], np.int64))
    graph("Cast", flat, output="scores", to=TensorProto.FLOAT)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            request.name,
            [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["documents", request.scoring.n_features])],
            [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["documents"])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in operators.items()],
        ir_version=IR_VERSION,
        producer_name="ranksvm",
    )
    by_query = " of one query" if isinstance(request.scoring.scaling, QueryScaling) else ""
    model.doc_string = f"Scores of a {request.scoring.model} for documents{by_query}."
    helper.set_model_props(model, _properties(request))
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _note_lost_digits(request: Request) -> None:
    """Add a note if float32 rounds the scores of the self-test by a considerable part of their range."""
    scores = request.test.scores
    error, extent = np.abs(scores.astype(np.float32) - scores).max(), np.ptp(scores)
    if 0.0 < LOST_DIGITS * extent < error:
        request.notes.append(
            f"the scores of the file are float32, which rounds scores near {np.abs(scores).max():.3g} by up to "
            f"{error:.2g}: documents may change places. Put a StandardScaler before the ranker."
        )


def _properties(request: Request) -> dict[str, str]:
    """The metadata of the file, all as text: how to install it, names of features, and the self-test."""
    columns = np.arange(request.scoring.n_features)
    return {
        "ranksvm.install": f"onnxruntime.InferenceSession({request.file!r}).run(None, {{'features': X}})",
        "ranksvm.features": json.dumps(request.names, ensure_ascii=False),
        "ranksvm.test": json.dumps(request.test.by_name(request.names, columns), ensure_ascii=False),
    }


def _scaled(graph: _Graph, X: str, scaling: Scaling | QueryScaling | None) -> str:
    if scaling is None:
        return X
    if isinstance(scaling, Scaling):
        return graph("Div", graph("Sub", X, graph.constant(scaling.shift)), graph.constant(scaling.scale))
    if scaling.method == "min_max":
        low = graph("ReduceMin", X, axes=[0], keepdims=1)
        spread = graph("Sub", graph("ReduceMax", X, axes=[0], keepdims=1), low)
        return graph("Div", graph("Sub", X, low), _one_where_zero(graph, spread))
    # relative to the first document, so that a constant feature is exactly 0
    first = graph("Slice", X, graph.constant([0], np.int64), graph.constant([1], np.int64))  # nothing of no documents
    centered = graph("Sub", X, first)
    centered = graph("Sub", centered, graph("ReduceMean", centered, axes=[0], keepdims=1))
    shifted = centered if scaling.with_mean else X
    if not scaling.with_std:
        return shifted
    variance = graph("ReduceMean", graph("Mul", centered, centered), axes=[0], keepdims=1)
    return graph("Div", shifted, _one_where_zero(graph, graph("Sqrt", variance)))


def _one_where_zero(graph: _Graph, spread: str) -> str:
    # if the spread is 0, the numerator is 0, or must not be changed
    return graph("Where", graph("Greater", spread, graph.constant(0.0)), spread, graph.constant(1.0))


def _additive(graph: _Graph, Z: str, function: Additive, types: "type[TensorProto]") -> str:
    """The linear part plus the trees. In the linear part a missing value counts as 0, if a tree has a value for it."""
    missing = graph("And", graph("Not", graph("Equal", Z, Z)), graph.constant(function.missing, np.bool_))
    filled = graph("Where", missing, graph.constant(0.0), Z)
    products = graph("MatMul", filled, graph.constant(function.coef[:, np.newaxis]))
    linear = graph("Add", products, graph.constant(function.intercept))
    trees = graph(
        "TreeEnsembleRegressor", Z, domain="ai.onnx.ml", n_targets=1, **_tree_attributes(graph, function.tables)
    )
    return graph("Add", linear, graph("Cast", trees, to=types.DOUBLE))


def _tree_attributes(graph: _Graph, tables: list[Table]) -> dict[str, Any]:
    """All trees as attributes of the operator: a list for each property of the nodes, and of the leaves."""
    forest = _Forest()
    for number, table in enumerate(tables):
        forest.add(tree_of(table), number, 0)
    tensor = graph.numpy_helper.from_array
    n_leaves = len(forest.values)
    return {
        **{f"nodes_{name}": listed for name, listed in forest.nodes.items()},
        "nodes_values_as_tensor": tensor(np.array(forest.cuts), "cuts"),
        "target_treeids": [forest.nodes["treeids"][place] for place in forest.leaves],
        "target_nodeids": [forest.nodes["nodeids"][place] for place in forest.leaves],
        "target_ids": [0] * n_leaves,
        "target_weights_as_tensor": tensor(np.array(forest.values), "values"),
    }


class _Forest:
    """All trees, as lists with an entry for each node; also the indices of leaves in these lists, and their values."""

    def __init__(self) -> None:
        properties = ("treeids", "nodeids", "featureids", "modes", "missing_value_tracks_true")
        self.nodes: dict[str, list[Any]] = {name: [] for name in (*properties, "truenodeids", "falsenodeids")}
        self.cuts: list[float] = []
        self.leaves: list[int] = []
        self.values: list[float] = []

    def add(self, tree: Tree, number: int, node: int) -> int:
        """Add a tree, or a subtree with its root at number ``node``; return the number of the next free node."""
        if isinstance(tree, Leaf):
            self.leaves.append(self._node(number, node, 0, "LEAF", 0, 0.0))
            self.values.append(tree.value)
            return node + 1
        place = self._node(number, node, tree.column, "BRANCH_LT", int(tree.missing), tree.cut)
        following = self.add(tree.below, number, node + 1)
        self.nodes["truenodeids"][place], self.nodes["falsenodeids"][place] = node + 1, following
        return self.add(tree.above, number, following)

    def _node(self, tree: int, node: int, column: int, mode: str, missing_is_true: int, cut: float) -> int:
        """Add an entry for a node; return its index."""
        for listed, value in zip(self.nodes.values(), (tree, node, column, mode, missing_is_true, 0, 0), strict=True):
            listed.append(value)
        self.cuts.append(cut)
        return len(self.cuts) - 1


def _kernel(graph: _Graph, Z: str, function: KernelSum) -> str:
    """Kernel values of the documents with the vectors."""
    name, given = function.kernel.name, function.kernel.parameters
    if name == "rbf":
        # distances of centered rows, because values far from 0 would cost digits
        center = function.vectors.mean(axis=0)
        vectors = function.vectors - center
        rows = graph("Sub", Z, graph.constant(center))
        squares = graph("ReduceSum", graph("Mul", rows, rows), graph.constant([1], np.int64), keepdims=1)
        products = graph("Mul", graph("MatMul", rows, graph.constant(vectors.T)), graph.constant(-2.0))
        distances = graph("Add", graph("Add", products, squares), graph.constant(np.square(vectors).sum(axis=1)))
        # round-off may make a distance negative
        positive = graph("Max", distances, graph.constant(0.0))
        return graph("Exp", graph("Mul", positive, graph.constant(-given["gamma"])))
    if name == "laplacian":
        # (documents, 1, features) - (vectors, features)
        rows = graph("Unsqueeze", Z, graph.constant([1], np.int64))
        differences = graph("Abs", graph("Sub", rows, graph.constant(function.vectors)))
        distances = graph("ReduceSum", differences, graph.constant([2], np.int64), keepdims=0)
        return graph("Exp", graph("Mul", distances, graph.constant(-given["gamma"])))
    if name == "cosine":
        norms = np.sqrt(np.square(function.vectors).sum(axis=1, keepdims=True))
        vectors = function.vectors / np.where(norms > 0.0, norms, 1.0)
        squares = graph("ReduceSum", graph("Mul", Z, Z), graph.constant([1], np.int64), keepdims=1)
        rows = graph("Div", Z, _one_where_zero(graph, graph("Sqrt", squares)))
        return graph("MatMul", rows, graph.constant(vectors.T))
    products = graph("MatMul", Z, graph.constant(function.vectors.T))
    if name == "linear":
        return products
    if name != "poly":
        raise OptionError(f"the kernel {name!r} cannot be written in ONNX.")
    bases = graph("Add", graph("Mul", products, graph.constant(given["gamma"])), graph.constant(given["coef0"]))
    return graph("Pow", bases, graph.constant(float(given["degree"])))


def _fourier(graph: _Graph, Z: str, function: Fourier, types: "type[TensorProto]") -> str:
    """The score from random Fourier features.

    Cosines and sines are computed in float32, of phases between -pi and pi: not every runtime has these operators for
    float64.
    """
    frequencies, half = function.frequencies, len(function.frequencies)
    turns = graph("MatMul", Z, graph.constant(frequencies.T / (2.0 * np.pi)))
    turns = graph("Sub", turns, graph("Floor", graph("Add", turns, graph.constant(0.5))))
    phases = graph("Cast", graph("Mul", turns, graph.constant(2.0 * np.pi)), to=types.FLOAT)
    coef = function.coef[:, np.newaxis] / np.sqrt(half)
    parts = []
    for operator, part in (("Cos", coef[:half]), ("Sin", coef[half:])):
        values = graph("Cast", graph(operator, phases), to=types.DOUBLE)
        parts.append(graph("MatMul", values, graph.constant(part)))
    return graph("Add", *parts)


ONNX = Target(
    "onnx",
    ".onnx",
    write,
    query_methods=frozenset({"min_max", "standard"}),
    no_query_scaler=NO_RETRIEVERS,
    kernels=True,
)
