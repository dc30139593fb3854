"""Query-wise scalers against one query at a time, and scikit-learn's own checks."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, strategies as st
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from ranksvm.data import QueryMinMaxScaler, QueryStandardScaler, RetrieverScaler, scalers
from ranksvm.datasets import read_letor
from ranksvm.exceptions import DataError, OneQueryWarning, OptionError

SCALERS = [(QueryMinMaxScaler, MinMaxScaler), (QueryStandardScaler, StandardScaler)]


def one_query_at_a_time(scaler, X, qid):
    out = np.zeros(X.shape)
    for query in set(qid):
        rows = [i for i, value in enumerate(qid) if value == query]
        block = X[rows].astype(np.float64)
        constant = (block == block[0]).all(axis=0)
        out[np.ix_(rows, ~constant)] = scaler().fit_transform(block)[:, ~constant]
    return out


@st.composite
def problems(draw):
    rows = draw(st.integers(1, 25))
    qid = draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    X = np.round(rng.standard_normal((rows, 3)) * draw(st.sampled_from([0.5, 2, 1e4])), 1)
    X[:, 0] = draw(st.sampled_from([0.1, X[:, 0]]))
    return X, qid


@pytest.mark.parametrize(("ours", "theirs"), SCALERS)
@given(problem=problems(), block=st.sampled_from([1, 20, 1 << 18]))
def test_equals_sklearn_query_by_query(ours, theirs, problem, block):
    X, qid = problem
    before = X.copy()
    whole, scalers.BLOCK = scalers.BLOCK, block
    try:
        got = ours().fit_transform(X, qid=qid)
    finally:
        scalers.BLOCK = whole
    assert np.allclose(got, one_query_at_a_time(theirs, X, qid), atol=1e-9)
    assert np.array_equal(X, before)


@pytest.mark.parametrize(("ours", "theirs"), SCALERS)
@pytest.mark.filterwarnings("ignore::ranksvm.exceptions.OneQueryWarning")
def test_without_qid_all_rows_are_one_query(ours, theirs):
    X = np.random.default_rng(0).random((20, 4))
    assert np.allclose(ours().fit_transform(X), theirs().fit_transform(X))


@pytest.mark.parametrize("scaler", [QueryMinMaxScaler(), QueryStandardScaler(), QueryStandardScaler(with_mean=False)])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_what_is_not_finite_is_named_by_its_place(scaler, value, name):
    X = np.ones((6, 3))
    good = X.copy()
    X[4, 1] = X[5, 0] = value
    kinds = [np.asarray, np.float32] + [sp.csr_matrix] * (not getattr(scaler, "with_mean", True))
    for kind in kinds:
        message = (
            rf"Input X contains {name} at X\[4, 1\] \(feature f2\) \(2 \w+ in all: .*\): drop such rows, or replace"
        )
        with pytest.raises(DataError, match=message):
            scaler.fit(kind(X), qid=[1] * 6)
        with pytest.raises(DataError, match=message):
            scaler.fit(kind(good)).transform(kind(X), qid=[1] * 6)


@pytest.mark.parametrize("scaler", [QueryMinMaxScaler, QueryStandardScaler])
def test_constant_features_become_exactly_zero(scaler):
    X = np.full((7, 3), 0.1, dtype=np.float32)
    X[:, 1] = 1e30
    assert np.array_equal(scaler().fit_transform(X, qid=[1, 2, 1, 2, 2, 1, 3]), np.zeros((7, 3)))


@pytest.mark.parametrize("scaler", [QueryMinMaxScaler, QueryStandardScaler])
def test_types_and_copies(scaler):
    X = np.random.default_rng(0).random((6, 2), dtype=np.float32)
    assert scaler().fit_transform(X).dtype == np.float32
    assert scaler().fit_transform(X.astype(int)).dtype == np.float64
    expected = scaler().fit_transform(X, qid=[1, 1, 2, 2, 1, 1])
    out = scaler(copy=False).fit_transform(X, qid=[1, 1, 2, 2, 1, 1])
    assert np.shares_memory(out, X)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("scale", [1.0, 1e-310])
def test_the_largest_value_of_every_query_is_exactly_1(scale):
    """An additive model would otherwise put some of them into another level."""
    X = scale * np.random.default_rng(0).uniform(0.0, 50.0, (400, 5))
    scaled = QueryMinMaxScaler().fit_transform(X, qid=np.repeat(np.arange(40), 10)).reshape(40, 10, 5)
    assert (scaled.max(axis=1) == 1.0).all()
    assert (scaled.min(axis=1) == 0.0).all()


@pytest.mark.parametrize("step", [1.0, 2.0**-22])  # 2^-22: the distance of neighboring numbers near 2^30
def test_large_means_cost_no_digits(step):
    expected = QueryStandardScaler().fit_transform(np.array([[0.0], [1.0], [3.0]]))
    got = QueryStandardScaler().fit_transform(2.0**30 + step * np.array([[0.0], [1.0], [3.0]]))
    assert np.allclose(got, expected, rtol=1e-14)


@given(problem=problems(), share=st.floats(0, 1))
def test_sparse_standard_scaler(problem, share):
    X, qid = problem
    X = X * (np.random.default_rng(1).random(X.shape) < share)
    matrix = sp.csr_matrix(X)
    got = QueryStandardScaler(with_mean=False).fit_transform(matrix, qid=qid)
    assert sp.issparse(got)
    assert got.nnz == matrix.nnz
    assert np.allclose(got.toarray(), QueryStandardScaler(with_mean=False).fit_transform(X, qid=qid), atol=1e-9)
    assert np.array_equal(matrix.toarray(), X)
    assert QueryStandardScaler(with_mean=False).fit_transform(matrix.astype(np.float32)).dtype == np.float32


def test_without_qid_it_warns_and_refuses_many_rows():
    with pytest.warns(OneQueryWarning, match="QueryMinMaxScaler got no query ids, so all 3 rows are one") as caught:
        QueryMinMaxScaler().fit_transform([[1.0], [2.0], [3.0]])
    assert len(caught) == 1
    with pytest.raises(DataError, match=r"1,500 rows without query ids.*say so: qid=np.zeros\(1500\)"):
        QueryStandardScaler().fit_transform(np.zeros((1500, 1)))


def test_options_of_the_standard_scaler():
    X = np.array([[1.0], [3.0], [10.0], [10.0]])
    qid = [1, 1, 2, 2]
    assert QueryStandardScaler(with_std=False).fit_transform(X, qid=qid).ravel().tolist() == [-1, 1, 0, 0]
    assert QueryStandardScaler(with_mean=False).fit_transform(X, qid=qid).ravel().tolist() == [1, 3, 10, 10]
    neither = QueryStandardScaler(with_mean=False, with_std=False)
    assert np.array_equal(neither.fit_transform(X, qid=qid), X)
    assert (neither.fit_transform(sp.csr_matrix(X), qid=qid) != sp.csr_matrix(X)).nnz == 0


@pytest.mark.parametrize(
    ("scaler", "message"),
    [
        (QueryMinMaxScaler(), r"QueryMinMaxScaler would make a sparse X dense.*QueryStandardScaler\(with_mean=False\)"),
        (QueryStandardScaler(), "QueryStandardScaler would make a sparse X dense.*with_mean=False"),
    ],
)
def test_what_would_make_sparse_data_dense_is_refused(scaler, message):
    with pytest.raises(DataError, match=message):
        scaler.fit(sp.csr_matrix(np.eye(3)))


@pytest.mark.parametrize("X", [np.ones(3), np.ones((2, 2, 2)), np.ones((0, 2)), None])
def test_an_x_that_is_not_a_matrix_is_refused(X):
    with pytest.raises(DataError):
        QueryMinMaxScaler().fit(X)
    with pytest.raises(DataError):
        QueryMinMaxScaler().fit(np.eye(2)).transform(X, qid=[1])


@pytest.mark.parametrize("scaler", [QueryMinMaxScaler, QueryStandardScaler])
def test_lengths_must_agree(scaler):
    with pytest.raises(DataError, match="qid has 2 entries but X has 3 rows"):
        scaler().fit(np.ones((3, 1)), qid=[1, 2])
    with pytest.raises(DataError, match="qid has 2 entries but X has 3 rows"):
        scaler().fit(np.ones((3, 1))).transform(np.ones((3, 1)), qid=[1, 2])


@pytest.mark.parametrize("scaler", [QueryMinMaxScaler(), QueryStandardScaler()])
def test_in_a_pipeline_with_metadata_routing(scaler):
    X = np.random.default_rng(0).random((12, 3))
    qid = np.arange(12) % 4
    expected = scaler.fit_transform(X, qid=qid)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(scaler, QueryMinMaxScaler())
        first = Pipeline(pipeline.steps[:1])
        assert np.array_equal(first.fit_transform(X, qid=qid), expected)
        assert np.array_equal(first.fit(X, qid=qid).transform(X, qid=qid), expected)
        both = pipeline.fit(X, qid=qid).transform(X, qid=qid)
    assert np.array_equal(both, QueryMinMaxScaler().fit_transform(expected, qid=qid))


def test_names_of_features():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 3.0]})
    scaler = QueryMinMaxScaler().set_output(transform="pandas").fit(frame)
    assert scaler.get_feature_names_out().tolist() == ["a", "b"]
    assert scaler.transform(frame).columns.tolist() == ["a", "b"]


BATCH_REASON = "a row is scaled by the rows of its query, and without qid the rows given are one query"


@pytest.mark.parametrize(
    "scaler", [QueryMinMaxScaler(), QueryStandardScaler(), QueryStandardScaler(with_mean=False)], ids=repr
)
def test_sklearn_checks(scaler):
    check_estimator(scaler, expected_failed_checks={"check_methods_subset_invariance": BATCH_REASON})


def test_letor_files_are_normalized_so(shared_data):
    # MQ2008 is published query-normalized: scaling it again changes nothing beyond its six printed digits.
    data = read_letor(shared_data / "MQ2008" / "Fold1" / "vali.txt.gz")
    spread = np.maximum.reduceat(data.X, data.queries.pointers[:-1]) - np.minimum.reduceat(
        data.X, data.queries.pointers[:-1]
    )
    scaled = QueryMinMaxScaler().fit_transform(data.X, qid=data.qid)
    varying = spread[data.queries.numbers()] > 0.5
    assert np.abs(scaled - data.X)[varying].max() < 1e-5


@pytest.mark.parametrize("name", ["with_mean", "with_std", "copy"])
@pytest.mark.parametrize("value", [3, 1, "no", None])
def test_flags_are_true_or_false(name, value):
    scaler = QueryStandardScaler(**{name: value})
    with pytest.raises(OptionError, match=f"{name} must be True or False, got {value!r}"):
        scaler.fit([[1.0], [2.0]], qid=[1, 1])
    fitted = QueryStandardScaler().fit([[1.0], [2.0]], qid=[1, 1]).set_params(**{name: value})
    with pytest.raises(OptionError, match=f"{name} must be True or False, got {value!r}"):
        fitted.transform([[1.0], [2.0]], qid=[1, 1])


@pytest.mark.parametrize("scaler", [QueryMinMaxScaler, RetrieverScaler])
def test_every_scaler_checks_copy(scaler):
    with pytest.raises(OptionError, match="copy must be True or False, got 'yes'"):
        scaler(copy="yes").fit([[1.0], [2.0]], qid=[1, 1])
    assert scaler(copy=np.True_).fit_transform([[1.0], [2.0]], qid=[1, 1]).tolist() == [[0.0], [1.0]]


def test_an_engine_that_is_no_name_is_refused():
    with pytest.raises(OptionError, match=r"engine must be one of 'elasticsearch', 'opensearch', got \['opensearch'\]"):
        RetrieverScaler(engine=["opensearch"]).fit([[1.0]], qid=[1])
