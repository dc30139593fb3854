"""Arrays that scikit-learn's checks would return unchanged are not passed to them: the results must be the same."""

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm import RankSVM
from ranksvm.data import frames, validation
from ranksvm.estimators.base.inputs import features_and_labels, validated_features
from ranksvm.exceptions import DataError

X = np.random.default_rng(0).normal(size=(6, 4)).round(3)
Y = np.arange(6)
FORMS = {
    "float64": X,
    "float32": X.astype(np.float32),
    "columns of an array": X[:, :3],
    "every other row": X[::2],
    "Fortran order": np.asfortranarray(X),
    "not writeable": np.frombuffer(X.tobytes()).reshape(X.shape),
    "big-endian": X.astype(">f8"),
    "float16": X.astype(np.float16),
    "integers": (10 * X).astype(int),
    "objects": X.astype(object),
    "list": X.tolist(),
    "csr_matrix": sp.csr_matrix(X),
    "csr_array": sp.csr_array(X.astype(np.float32)),
    "csr of integers": sp.csr_array((10 * X).astype(int)),
    "csc": sp.csc_array(X),
    "coo": sp.coo_matrix(X),
    "vector": X[0],
    "three axes": X[:, :, None],
    "no rows": X[:0],
    "no columns": X[:, :0],
    "no rows of csr": sp.csr_array((0, 4)),
    "no columns of csr": sp.csr_array((6, 0)),
    "complex": X.astype(complex),
}


def outcome(check, estimator):
    """What a check returns, or its error, and what the estimator then knows of the features."""
    try:
        found = check()
    except (ValueError, TypeError) as error:
        return str(error), None
    parts = [found.data, found.indices, found.indptr] if sp.issparse(found) else [found]
    known = {name: value for name, value in vars(estimator).items() if name.endswith("_in_")}
    layout = [(part.dtype, part.flags.c_contiguous, part.tobytes()) for part in parts]
    return type(found), (layout, list(known.items()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reset", [True, False])
def test_features_are_those_of_scikit_learn(form, reset):
    given = FORMS[form]
    one, other = RankSVM(), RankSVM()
    if not reset:
        one.n_features_in_ = other.n_features_in_ = 4
    found = outcome(lambda: validated_features(one, given, n_threads=1, reset=reset), one)
    expected = outcome(lambda: frames.validated(other, given, reset=reset, **validation.FEATURE_CHECKS), other)
    assert found == expected


@pytest.mark.parametrize("form", ["float64", "float32", "csr_matrix", "csr_array", "not writeable"])
def test_what_needs_no_conversion_is_not_copied(form):
    assert validated_features(RankSVM(), FORMS[form], n_threads=1, reset=True) is FORMS[form]


@pytest.mark.parametrize("y", [Y, Y.astype(np.float32), Y[:5], Y[:, None], Y.astype(str), Y.tolist()])
def test_labels_are_those_of_scikit_learn(y):
    def check(validated):
        return lambda: np.asarray(validated()[1], dtype=np.float64)

    one, other = RankSVM(), RankSVM()
    found = outcome(check(lambda: features_and_labels(one, X, y, n_threads=1)), one)
    options = {"reset": True, "y_numeric": True, **validation.FEATURE_CHECKS}
    assert found == outcome(check(lambda: frames.validated(other, X, y, **options)), other)


def test_names_of_an_earlier_fit_are_forgotten_and_compared():
    estimator = RankSVM()
    estimator.n_features_in_, estimator.feature_names_in_ = 4, np.array(list("abcd"), dtype=object)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but RankSVM"):
        validated_features(estimator, X, n_threads=1)
    validated_features(estimator, X[:, :3], n_threads=1, reset=True)
    assert estimator.n_features_in_ == 3
    assert not hasattr(estimator, "feature_names_in_")
    with pytest.raises(DataError, match="X has 4 features, but RankSVM is expecting 3"):
        validated_features(estimator, X, n_threads=1)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_values_that_are_not_finite_are_found(form):
    bad = X.copy()
    bad[2, 1] = np.nan
    with pytest.raises(DataError, match=r"NaN at X\[2, 1\]"):
        validated_features(RankSVM(), form(bad), n_threads=1, reset=True)


def test_csr_of_a_column_of_an_array():
    # SciPy keeps views with gaps
    entries = np.array([[0, 1.0], [2, 2.0], [1, 3.0], [0, -1.0]])
    columns = np.array([[0, 9], [2, 9], [1, 9], [0, 9]], dtype=np.int32)
    given = sp.csr_array((entries[:, 1], columns[:, 0], np.arange(5, dtype=np.int32)), shape=(4, 3))
    labels, qid = [1, 0, 1, 0], [0, 0, 1, 1]
    for values in (given, given.astype(int)):
        model = RankSVM().fit(values, labels, qid=qid)
        np.testing.assert_array_equal(model.predict(values), model.predict(given.copy()))
        assert model.objective_ == RankSVM().fit(given.copy(), labels, qid=qid).objective_
