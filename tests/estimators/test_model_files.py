"""Model files from strangers: what mutation found is refused with an error of ranksvm."""

import io
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

import ranksvm
from ranksvm.exceptions import DataError, ModelFileError, RankSVMError
from ranksvm.model_files import persistence

X = np.random.default_rng(0).normal(size=(30, 4))
Y, QID = np.arange(30) % 3, np.repeat([0, 1, 2], 10)
SPARSE = sp.csr_matrix(np.where(np.abs(X) > 1, X, 0.0))
MODELS = {
    "linear": lambda: ranksvm.RankSVM().fit(X, Y, qid=QID),
    "cv": lambda: ranksvm.RankSVMCV(Cs=[0.1, 1], cv=2).fit(X, Y, qid=QID),
    "dual": lambda: ranksvm.RankSVM(solver="dual").fit(X, Y, qid=QID),
    "kernel": lambda: ranksvm.KernelRankSVM(kernel="laplacian").fit(SPARSE, Y, qid=QID),
    "precomputed": lambda: ranksvm.KernelRankSVM(kernel="precomputed").fit(X @ X.T, Y, qid=QID),
    "fourier": lambda: ranksvm.KernelRankSVM(approximation="fourier", n_components=8).fit(X, Y, qid=QID),
    "factorized": lambda: ranksvm.FactorizedRankSVM(max_epochs=2).fit(X, Y, qid=QID),
    "regularized": lambda: ranksvm.RegularizedRankSVM(max_iter=2).fit(X, Y, qid=QID),
    "solar": lambda: ranksvm.SOLARRanker(2, average=True).fit(X, Y, qid=QID),
    "prank": lambda: ranksvm.PRanker().fit(X, Y, qid=QID),
    "committee": lambda: ranksvm.PerceptronCommitteeRanker(3).fit(X, Y, qid=QID),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The bytes of a file of each model."""
    path = tmp_path_factory.mktemp("models") / "model"
    found = {}
    for name, fitted in MODELS.items():
        fitted().save(path)
        found[name] = path.read_bytes()
    return found


def changed(content, arrays=None, fitted=None, params=None, header=None):
    """A file with other fields, and checksums that match."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    head = json.loads(members.pop("header.json"))
    for name, change in (arrays or {}).items():
        buffer = io.BytesIO()
        np.save(buffer, change(np.load(io.BytesIO(members[f"{name}.npy"]))), allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    for name, value in (fitted or {}).items():
        head["model"]["fitted"][name] = value
        if value is ...:
            del head["model"]["fitted"][name]
    head["model"]["params"] |= params or {}
    head["sha256"] = {name: persistence.hashlib.sha256(member).hexdigest() for name, member in members.items()}
    head |= header or {}
    head["header_sha256"] = persistence._header_checksum(head)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, member in {"header.json": json.dumps(head).encode(), **members}.items():
            archive.writestr(name, member)
    return buffer.getvalue()


def at(place, value):
    def change(array):
        array.reshape(-1)[place] = value
        return array

    return change


def unsigned(array):
    return at(2, 2**32 - 1)(array.astype(np.uint32))


def as_dict(**items):
    return {"type": "dict", "items": [list(item) for item in items.items()]}


def short(array):
    return array[:-1]


WRONG = {
    "n_features_in_": ("linear", {"fitted": {"n_features_in_": 5}}),
    "short coef_": ("linear", {"arrays": {"coef_": short}}),
    "coef_ of float32": ("linear", {"arrays": {"coef_": lambda a: a.astype(np.float32)}}),
    "coef_ of other byte order": ("linear", {"arrays": {"coef_": lambda a: a.astype(">f8")}}),
    "NaN in coef_": ("linear", {"arrays": {"coef_": at(0, np.nan)}}),
    "coef_ as a matrix": ("linear", {"arrays": {"coef_": lambda a: a[np.newaxis]}}),
    "coef_ as a list": ("linear", {"fitted": {"coef_": [1, 2, 3, 4]}}),
    "no coef_": ("linear", {"fitted": {"coef_": ...}}),
    "unknown attribute": ("linear", {"fitted": {"weights_": 1}}),
    "unknown parameter": ("linear", {"params": {"weight": 1}}),
    "fitted_params_": ("linear", {"fitted": {"fitted_params_": as_dict(C=1)}}),
    "history_": ("linear", {"fitted": {"history_": 3}}),
    "converged_": ("linear", {"fitted": {"converged_": "yes"}}),
    "n_pairs_": ("dual", {"fitted": {"n_pairs_": 7}}),
    "Cs_": ("cv", {"arrays": {"Cs_": short}}),
    "support_": ("precomputed", {"arrays": {"support_": at(3, 30)}}),
    "support_ in another order": ("kernel", {"arrays": {"support_": at(3, 255)}}),
    "negative support_": ("precomputed", {"arrays": {"support_": at(3, -1)}}),
    "dual_coef_": ("kernel", {"arrays": {"dual_coef_": short}}),
    "row pointers that descend": ("kernel", {"arrays": {"support_vectors_.indptr": at(2, 1000)}}),
    "unsigned row pointers": ("kernel", {"arrays": {"support_vectors_.indptr": unsigned}}),
    "columns": ("kernel", {"arrays": {"support_vectors_.indices": at(1, 4)}}),
    "kernel": ("kernel", {"fitted": {"gamma_": "x"}}),
    "frequencies_": ("fourier", {"arrays": {"frequencies_": short}}),
    "feature_coef_": ("fourier", {"fitted": {"feature_coef_": ...}}),
    "factors_": ("factorized", {"arrays": {"factors_": at(0, 1e300)}}),
    "ranks_": ("regularized", {"arrays": {"ranks_": at(0, 2**62)}}),
    "singular_values_": ("regularized", {"arrays": {"singular_values_": short}}),
    "weights_": ("solar", {"arrays": {"weights_": short}}),
    "counts_": ("solar", {"arrays": {"counts_": lambda a: a[:2]}}),
    "enormous counts_": ("solar", {"arrays": {"counts_": at(3, 1e300)}}),
    "lag_": ("solar", {"arrays": {"lag_": short}}),
    "_covariance_": ("solar", {"arrays": {"_covariance_": short}}),
    "order": ("solar", {"fitted": {"fitted_params_": as_dict(order=1, covariance="full")}}),
    "seed_": ("solar", {"fitted": {"seed_": -1}}),
    "thresholds_": ("prank", {"arrays": {"thresholds_": lambda a: np.append(a, 9.0)}}),
    "levels_": ("prank", {"arrays": {"levels_": lambda a: a[::-1].copy()}}),
    "experts_": ("committee", {"arrays": {"experts_": lambda a: a[:, :2]}}),
    "survivals_": ("committee", {"arrays": {"survivals_": short}}),
    "survival_": ("committee", {"arrays": {"survival_": lambda a: a[:0]}}),
    "a number of type O": ("linear", {"fitted": {"objective_": {"type": "scalar", "dtype": "O", "value": 1}}}),
    "no model": ("linear", {"header": {"model": None}}),
    "no checksums": ("linear", {"header": {"sha256": 3}}),
    "version": ("linear", {"header": {"version": [1]}}),
}  # fmt: skip


@pytest.mark.parametrize(("name", "change"), WRONG.values(), ids=WRONG)
def test_changed_files_are_refused(name, change, files, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(changed(files[name], **change))
    with pytest.raises(ModelFileError, match="model"):
        ranksvm.load(path)


@pytest.mark.parametrize("name", MODELS)
def test_files_as_they_were_are_accepted(name, files, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(changed(files[name]))
    ranksvm.load(path)


def test_deep_and_compressed_files(files, tmp_path):
    path = tmp_path / "model"
    deep = json.loads("[" * 900 + "]" * 900)
    path.write_bytes(changed(files["linear"], params={"C": deep}))
    with pytest.raises(RankSVMError):
        ranksvm.load(path).fit(X, Y)
    for depth in range(700, 1000):
        nested = "[" * depth + "]" * depth
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.json", f'{{"format": "ranksvm-model", "version": 1, "model": {nested}}}')
        with pytest.raises(ModelFileError, match="header"):
            ranksvm.load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b" " * 1_000_000)
    with pytest.raises(ModelFileError, match="compressed"):
        ranksvm.load(path)


def test_a_header_of_an_array_that_is_no_python(files, tmp_path):
    path = tmp_path / "model"
    content = files["linear"].replace(b"'descr'", b"'de(cr'")
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        ranksvm.load(path)


def test_an_array_of_texts_without_bytes_is_refused(files, tmp_path):
    """As names of features, such texts took gigabytes."""
    path = tmp_path / "model"
    path.write_bytes(changed(files["linear"], arrays={"coef_": lambda _: np.ndarray((10**9,), "U0")}))
    with pytest.raises(ModelFileError, match="cannot hold 1000000000 values"):
        ranksvm.load(path)


def test_axes_in_another_order_in_memory_are_accepted(files, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(changed(files["committee"], arrays={"experts_": np.asfortranarray}))
    ranksvm.load(path).partial_fit(X, Y, qid=QID)


def test_scores_that_overflow_are_no_scores(files, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(changed(files["linear"], arrays={"coef_": at(0, 1.7e308)}))
    with pytest.raises(DataError, match=r"score of row \d+ .* is -?inf"):
        ranksvm.load(path).predict(10 * X)


def test_support_vectors_with_wide_indices():
    wide = SPARSE.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    model = ranksvm.KernelRankSVM(kernel="laplacian").fit(wide, Y, qid=QID)
    np.testing.assert_array_equal(model.predict(SPARSE), model.predict(wide))


def test_the_linear_part_of_an_additive_model_had_another_name(tmp_path):
    model, path = ranksvm.AdditiveRankSVM().fit(X, Y, qid=QID), tmp_path / "model"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        fitted = json.loads(archive.read("header.json"))["model"]["fitted"]
    path.write_bytes(changed(path.read_bytes(), fitted={"coef_": fitted["linear_coef_"], "linear_coef_": ...}))
    np.testing.assert_array_equal(ranksvm.load(path).predict(X), model.predict(X))
