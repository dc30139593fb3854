"""Every target, scored again: by its runtime, or by the rules of the engine."""

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from export_runtimes import RUNTIMES, scores_of
from ranksvm import QueryMinMaxScaler, RetrieverScaler, export
from ranksvm.exceptions import OptionError

NAMES = ["bm25", "page rank", 'it\'s "quoted"', "été", "a,b;c $n ${n}", "select", "x\\y"]
PLAIN = [
    "bm25(title)",
    "attribute(age)",
    "fieldMatch(title).completeness",
    "query(x)",
    "clicks",
    "freshness(t)",
    "rank_1",
]
STATIC = ("none", "standard", "standard without mean", "min-max", "min-max from -1 to 3", "max-abs", "robust")
BY_QUERY = ("query-minmax", "query-standard", "query-standard without mean", "query-standard without deviation")
CAN_SCALE_BY_QUERY = ("onnx", "sql", "python", "javascript", "java", "c", "json")


def close(found, expected, single):
    """Equal up to round-off: of float64, or of float32."""
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=(5e-6 if single else 1e-11) * (1 + np.abs(expected).max()))


def names_for(target):
    return PLAIN if target == "vespa" else NAMES


@pytest.mark.parametrize(("target", "runtime"), RUNTIMES)
@pytest.mark.parametrize("scaler", STATIC)
def test_scores_with_a_scaler_of_the_training_data(linear_cases, target, runtime, scaler, tmp_path):
    if target == "java" and scaler not in ("none", "standard"):
        return  # its compiler takes seconds, and the file has the same form
    model, X, qid, expected = linear_cases[scaler]
    if target == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed")
    result = export(model, to=target, names=names_for(target), X=X, qid=qid)
    found = scores_of(target, runtime, result, X, qid, tmp_path)
    single = RUNTIMES[target, runtime][1]
    if target in ("solr", "elasticsearch", "opensearch") and scaler in ("none", "standard without mean", "max-abs"):
        # features of float32 times weights, without a shift: what is common to all scores costs digits
        magnitude = np.abs(X - X.mean(axis=0)) @ np.abs(weights_of(model))
        common = np.abs(X.mean(axis=0)) @ np.abs(weights_of(model))
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * (common + magnitude.max()))
        return
    close(found, expected, single)


def weights_of(model):
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    return steps[-1].coef_ / getattr(steps[0], "scale_", 1.0)


@pytest.mark.parametrize(("target", "runtime"), [key for key in RUNTIMES if key[0] in CAN_SCALE_BY_QUERY])
@pytest.mark.parametrize("scaler", BY_QUERY)
def test_scores_with_a_scaler_by_query(linear_cases, target, runtime, scaler, tmp_path):
    model, X, qid, expected = linear_cases[scaler]
    if target == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed")
    result = export(model, to=target, names=NAMES)
    close(scores_of(target, runtime, result, X, qid, tmp_path), expected, RUNTIMES[target, runtime][1])


def test_vespa_normalizes_by_query(linear_cases):
    model, X, qid, expected = linear_cases["query-minmax"]
    found = scores_of("vespa", "rules", export(model, to="vespa", names=PLAIN), X, qid, None)
    for query in np.unique(qid):
        rows = qid == query
        # a feature that is constant in the query counts one half there, and 0 here
        close(found[rows] - found[rows][0], expected[rows] - expected[rows][0], single=False)


@pytest.mark.parametrize("scaler", ["query-minmax", "query-standard"])
@pytest.mark.parametrize("target", dict.fromkeys(target for target, _ in RUNTIMES))
def test_a_target_that_sees_one_document_refuses_scalers_by_query(linear_cases, target, scaler):
    if target in CAN_SCALE_BY_QUERY or (target == "vespa" and scaler == "query-minmax"):
        return
    with pytest.raises(OptionError, match=f"scales features by query .*{target} cannot do: .*These can: .*onnx"):
        export(linear_cases[scaler].model, to=target)


KERNEL_TARGETS = [("onnx", name) for name in ("rbf", "laplacian", "poly", "cosine", "linear", "nystroem", "fourier")]


@pytest.mark.parametrize(("target", "kernel"), KERNEL_TARGETS)
def test_kernels(kernel_cases, target, kernel, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    model, X, qid, expected = kernel_cases[kernel]
    result = export(model, to=target)
    found = scores_of(target, "onnxruntime", result, X, qid, tmp_path)
    close(found, expected, single=True)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "nystroem"])
@pytest.mark.parametrize(("target", "runtime"), [("svm-rank", "rules"), ("libsvm", "libsvm")])
def test_kernels_that_files_of_other_programs_know(kernel_cases, target, runtime, kernel, tmp_path):
    pipeline, X, qid, _ = kernel_cases[kernel]
    with pytest.raises(OptionError, match="hold no scaler"):
        export(pipeline, to=target)
    ranker, Z = pipeline[-1], pipeline[:-1].transform(X)
    found = scores_of(target, runtime, export(ranker, to=target), Z, qid, tmp_path)
    close(found, ranker.predict(Z), RUNTIMES[target, runtime][1])


@pytest.mark.parametrize("target", ["svm-rank", "libsvm"])
def test_kernels_that_they_do_not_know(kernel_cases, target):
    with pytest.raises(OptionError, match="has no kernel 'cosine', only linear, poly and rbf"):
        export(kernel_cases["cosine"].model[-1], to=target)
    with pytest.raises(OptionError, match="random Fourier features: export to onnx"):
        export(kernel_cases["fourier"].model[-1], to=target)


def test_kernels_after_scalers_by_query(kernel_cases):
    model, X, _, _ = kernel_cases["rbf"]
    cases = [
        (QueryMinMaxScaler(), "libsvm", "These can: onnx. Or train with a"),
        (RetrieverScaler(), "onnx", "QueryStandardScaler. Train with a"),
    ]
    for scaler, target, advice in cases:
        with pytest.raises(OptionError, match=advice):
            export(Pipeline([("scaler", scaler.fit(X)), ("ranker", model[-1])]), to=target)


def test_kernels_elsewhere_are_refused(kernel_cases):
    for target in dict.fromkeys(target for target, _ in RUNTIMES):
        if target in ("onnx", "svm-rank", "libsvm"):
            continue
        with pytest.raises(OptionError, match=r"not linear, which .* needs: export to onnx"):
            export(kernel_cases["rbf"].model, to=target)
        assert export(kernel_cases["linear"].model, to=target, name="model").content


def test_the_batch_of_onnx_is_of_any_size(linear_cases):
    pytest.importorskip("onnx", reason="onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model, X, _, expected = linear_cases["standard"]
    session = onnxruntime.InferenceSession(export(model, to="onnx").content)
    for n in (1, 2, len(X)):
        (found,) = session.run(None, {"features": X[:n].astype(np.float32)})
        assert found.shape == (n,)
        close(found, expected[:n], single=True)
    for scaler in ("standard", "query-minmax", "query-standard"):
        session = onnxruntime.InferenceSession(export(linear_cases[scaler].model, to="onnx").content)
        (none,) = session.run(None, {"features": np.zeros((0, X.shape[1]), np.float32)})
        assert none.shape == (0,)
