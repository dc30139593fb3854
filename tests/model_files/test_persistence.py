"""Model files: what goes in comes out, and a file that is not whole is refused with a sentence that says why."""

import io
import json
import pathlib
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import linear_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import ranksvm
from ranksvm import RankSVM, make_ranking
from ranksvm.exceptions import ModelFileError, OptionError
from ranksvm.model_files import persistence

# one file per format version, made by write_model_of_this_version.py
RELEASED = pathlib.Path(__file__).parents[1] / "released_models"


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(20, 3)) * [1, 10, 1000]


@pytest.fixture
def model_file(tmp_path, X):
    path = tmp_path / "model"
    persistence.save(make_pipeline(StandardScaler(), MinMaxScaler((-1, 1))).fit(X), path)
    return path


def rewrite(path, change):
    """The same zip file with its members (name -> bytes) changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def rewrite_header(path, change, checksum=True):
    def change_members(members):
        header = json.loads(members["header.json"])
        change(header)
        if checksum:
            header["header_sha256"] = persistence._header_checksum(header)
        members["header.json"] = json.dumps(header).encode()

    rewrite(path, change_members)


def test_file_objects_hold_the_bytes_of_files(model_file, X):
    model = persistence.load(model_file)
    buffer = io.BytesIO()
    persistence.save(model, buffer, notes={"position": 3})
    assert persistence.read_notes(io.BytesIO(buffer.getvalue())) == {"position": 3}
    persistence.save(model, model_file, notes={"position": 3})
    assert buffer.getvalue() == model_file.read_bytes()
    buffer.seek(0)
    np.testing.assert_array_equal(persistence.load(buffer).transform(X), model.transform(X))


def test_a_file_object_that_is_no_model_is_refused():
    with pytest.raises(ModelFileError, match="is empty"):
        persistence.load(io.BytesIO())
    with pytest.raises(TypeError, match="binary"):
        persistence.load(io.StringIO("text"))


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((0, 2)), MaxAbsScaler(), RobustScaler()])
def test_a_scaler_transforms_as_before(scaler, X, tmp_path):
    scaler.fit(X)
    persistence.save(scaler, tmp_path / "scaler")
    loaded = ranksvm.load(tmp_path / "scaler")
    assert type(loaded) is type(scaler)
    assert loaded.get_params() == scaler.get_params()
    np.testing.assert_array_equal(loaded.transform(X), scaler.transform(X))


def test_a_scaler_that_counted_rows_by_feature(X, tmp_path):
    X = X.copy()
    X[3, 0] = np.nan
    scaler = StandardScaler().fit(X)
    assert np.shape(scaler.n_samples_seen_) == (X.shape[1],)
    persistence.save(scaler, tmp_path / "scaler")
    loaded = ranksvm.load(tmp_path / "scaler")
    np.testing.assert_array_equal(loaded.n_samples_seen_, scaler.n_samples_seen_)
    np.testing.assert_array_equal(loaded.transform(X), scaler.transform(X))


def test_a_pipeline_keeps_its_steps(model_file, X):
    loaded = ranksvm.load(model_file)
    assert isinstance(loaded, Pipeline)
    assert list(loaded.named_steps) == ["standardscaler", "minmaxscaler"]
    assert loaded.named_steps["minmaxscaler"].feature_range == (-1, 1)
    expected = make_pipeline(StandardScaler(), MinMaxScaler((-1, 1))).fit_transform(X)
    np.testing.assert_array_equal(loaded.transform(X), expected)


def test_the_steps_of_a_pipeline_before_its_end_are_fitted_or_none_is(tmp_path, X, monkeypatch):
    """A find of the fuzzer: `predict` of such a model raised NotFittedError."""
    part = make_pipeline(StandardScaler(), MinMaxScaler().fit(X))
    with pytest.raises(OptionError, match="some steps of a Pipeline are fitted and others are not"):
        persistence.save(part, tmp_path / "part")
    with monkeypatch.context() as without_checks:
        without_checks.setattr(persistence, "_check_fitted", lambda obj, fitted: fitted)
        persistence.save(part, tmp_path / "part")
    with pytest.raises(ModelFileError, match="some steps of a Pipeline are fitted and others are not"):
        ranksvm.load(tmp_path / "part")
    persistence.save(make_pipeline(StandardScaler(), MinMaxScaler()), tmp_path / "unfitted")
    assert len(ranksvm.load(tmp_path / "unfitted").steps) == 2
    persistence.save(make_pipeline(MinMaxScaler().fit(X), ranksvm.PRanker()), tmp_path / "to learn")
    assert len(ranksvm.load(tmp_path / "to learn").steps) == 2


def test_every_kind_of_value_comes_back_equal_and_of_the_same_type(tmp_path):
    values = {
        "none_": None,
        "flag_": True,
        "count_": 2**60,
        "number_": 0.1,
        "infinite_": float("-inf"),
        "text_": "a 'quoted' ü\n",
        "float32_": np.float32(0.1),
        "int64_": np.int64(-3),
        "list_": [1, 2.5, "x", [None]],
        "tuple_": (1, (2, 3)),
        "table_": {"a": [1.0], 3: {"deep": (1,)}},
        "single_": np.arange(3, dtype=np.float32),
        "fortran_": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "empty_": np.zeros((0, 4)),
        "unicode_": np.array(["a", "bcd"]),
        "zero_dimensional_": np.array(2.5),
    }
    persistence.save(StandardScaler(), tmp_path / "scaler", notes=values)
    loaded = persistence.read_notes(tmp_path / "scaler")
    for name, value in values.items():
        found = loaded[name]
        assert type(found) is type(value), name
        if isinstance(value, np.ndarray):
            assert found.dtype == value.dtype
            np.testing.assert_array_equal(found, value)
        else:
            assert found == value, name
    persistence.save(StandardScaler(), tmp_path / "scaler", notes={"nan_": float("nan")})
    assert np.isnan(persistence.read_notes(tmp_path / "scaler")["nan_"])


def test_feature_names_come_back(X, tmp_path):
    pandas = pytest.importorskip("pandas")
    scaler = StandardScaler().fit(pandas.DataFrame(X, columns=["bm25", "länge", "x"]))
    persistence.save(scaler, tmp_path / "scaler")
    loaded = ranksvm.load(tmp_path / "scaler")
    assert loaded.feature_names_in_.dtype == object
    assert loaded.feature_names_in_.tolist() == ["bm25", "länge", "x"]


def test_an_unfitted_model_is_saved_with_its_parameters(tmp_path):
    persistence.save(MinMaxScaler(clip=True), tmp_path / "scaler")
    loaded = ranksvm.load(tmp_path / "scaler")
    assert loaded.clip is True
    assert not hasattr(loaded, "scale_")


def test_the_same_model_gives_the_same_bytes_and_numpy_reads_them(model_file, X, tmp_path):
    again = tmp_path / "again"
    persistence.save(ranksvm.load(model_file), again)
    assert again.read_bytes() == model_file.read_bytes()
    with np.load(model_file, allow_pickle=False) as archive:
        np.testing.assert_allclose(archive["steps.0.1.mean_"], X.mean(axis=0))


def test_what_a_file_cannot_hold_is_named(X, tmp_path):
    path = tmp_path / "model"
    with pytest.raises(OptionError, match=r"sklearn.decomposition.*PCA, which a model file cannot hold"):
        persistence.save(PCA(2).fit(X), path)
    with pytest.raises(OptionError, match=r"item 1 of item 0 of parameter 'steps' of Pipeline.*FunctionTransformer"):
        persistence.save(make_pipeline(FunctionTransformer(np.log1p)), path)
    with pytest.raises(OptionError, match=r"parameter 'copy' of StandardScaler is .*lambda.*\(function\)"):
        persistence.save(StandardScaler(copy=lambda: True), path)
    scaler = StandardScaler().fit(X)
    scaler.odd_ = np.zeros((2, 2), dtype=object)
    with pytest.raises(OptionError, match="attribute 'odd_' of StandardScaler is an array of dtype object"):
        persistence.save(scaler, path)
    assert not list(tmp_path.iterdir())


def test_a_class_of_the_same_name_is_not_taken_for_the_real_one(tmp_path):
    impostor = type("StandardScaler", (StandardScaler,), {})
    with pytest.raises(OptionError, match="cannot hold"):
        persistence.save(impostor(), tmp_path / "model")


def test_a_failed_write_leaves_the_old_file(model_file, monkeypatch):
    before = model_file.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(persistence.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        persistence.save(StandardScaler(), model_file)
    assert model_file.read_bytes() == before
    assert list(model_file.parent.iterdir()) == [model_file]


def test_a_file_cut_anywhere_is_refused(model_file):
    whole = model_file.read_bytes()
    for length in range(0, len(whole), 7):
        model_file.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=r"truncated or damaged|not a ranksvm model|the file is empty"):
            ranksvm.load(model_file)


def test_a_byte_changed_anywhere_never_changes_the_model(model_file, X):
    whole = model_file.read_bytes()
    expected = ranksvm.load(model_file).transform(X)
    refused = 0
    for position in range(0, len(whole), 11):
        altered = bytearray(whole)
        altered[position] ^= 0x20
        model_file.write_bytes(altered)
        try:
            # zip files hold a few bytes that mean nothing to a reader (dates, system flags)
            np.testing.assert_array_equal(ranksvm.load(model_file).transform(X), expected)
        except ModelFileError:
            refused += 1
    assert refused > 0.8 * len(range(0, len(whole), 11))


def test_altered_contents_are_refused(model_file):
    original = model_file.read_bytes()

    def double_scale(members):
        members["steps.0.1.scale_.npy"] = persistence._npy_bytes(np.ones(3))

    rewrite(model_file, double_scale)
    with pytest.raises(ModelFileError, match=r"altered: steps.0.1.scale_.npy does not match its checksum"):
        ranksvm.load(model_file)

    model_file.write_bytes(original)
    rewrite(model_file, lambda members: members.update({"extra.npy": b""}))
    with pytest.raises(ModelFileError, match=r"altered: extra.npy missing or added"):
        ranksvm.load(model_file)

    model_file.write_bytes(original)
    rewrite_header(model_file, lambda header: header["model"]["params"].update(verbose=True), checksum=False)
    with pytest.raises(ModelFileError, match="altered: its header does not match"):
        ranksvm.load(model_file)


def test_a_newer_format_asks_for_an_upgrade(model_file):
    rewrite_header(model_file, lambda header: header.update(version=99, written_by={"ranksvm": "7.0"}))
    with pytest.raises(ModelFileError, match=r"format version 99 by ranksvm 7\.0.*pip install --upgrade"):
        ranksvm.load(model_file)


def test_only_known_classes_and_fitted_names_are_accepted(model_file):
    original = model_file.read_bytes()
    rewrite_header(model_file, lambda header: header["model"].update({"class": "Popen"}))
    with pytest.raises(ModelFileError, match="'Popen', which this version of ranksvm does not know"):
        ranksvm.load(model_file)

    for name in ["predict", "__class__", "a b_"]:
        model_file.write_bytes(original)
        rewrite_header(model_file, lambda header, name=name: header["model"]["fitted"].update({name: 1}))
        with pytest.raises(ModelFileError, match="has no fitted attribute"):
            ranksvm.load(model_file)

    model_file.write_bytes(original)
    rewrite_header(model_file, lambda header: header["model"]["params"].update(bogus=1))
    with pytest.raises(ModelFileError, match="cannot be rebuilt"):
        ranksvm.load(model_file)


def test_pickled_arrays_are_never_loaded(tmp_path):
    path = tmp_path / "model"
    persistence.save(StandardScaler(), path)
    buffer = tmp_path / "evil.npy"
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    content = buffer.read_bytes()

    def add(members):
        header = json.loads(members["header.json"])
        header["sha256"]["evil.npy"] = persistence.hashlib.sha256(content).hexdigest()
        header["header_sha256"] = persistence._header_checksum(header)
        members.update({"header.json": json.dumps(header).encode(), "evil.npy": content})

    rewrite(path, add)
    with pytest.raises(ModelFileError, match="an array in the model file cannot be read"):
        ranksvm.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"solver_type L2R_L2LOSS_SVC\n", "not a ranksvm model file .* are read by import_model"),
        (b"ranksvm-data\r\n", "a ranksvm data cache"),
        (b"PK\x03\x04 and then nothing", "truncated or damaged"),
    ],
)
def test_foreign_files_are_told_apart(tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        ranksvm.load(path)


def test_a_zip_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, a=np.zeros(3))
    with pytest.raises(ModelFileError, match=r"it has no header\.json"):
        ranksvm.load(path)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        ranksvm.load(tmp_path / "absent")


@pytest.mark.parametrize("path", [3, None, ("model",)])
def test_what_is_no_path_is_named(path):
    with pytest.raises(TypeError, match="path must be the path of a model file, got"):
        ranksvm.load(path)


def test_the_header_says_what_is_inside(model_file):
    header = persistence.read_header(model_file)
    assert header["model"]["class"] == "Pipeline"
    assert header["written_by"]["ranksvm"] == ranksvm.__version__


@pytest.fixture(scope="module")
def ranking():
    return ranksvm.make_ranking(n_queries=30, n_docs=10, n_features=6, random_state=0)


@pytest.mark.parametrize(
    "estimator",
    [
        ranksvm.RankSVM(C=0.1, solver="tron", tol=1e-6),
        ranksvm.RankSVMCV(Cs=np.array([0.01, 0.1]), cv=ranksvm.QueryKFold(3), metric="map"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_ranker_comes_back_whole(estimator, ranking, tmp_path):
    estimator.fit(ranking.X, ranking.y, qid=ranking.qid).save(tmp_path / "model")
    loaded = ranksvm.load(tmp_path / "model")
    assert type(loaded) is type(estimator)
    assert repr(loaded) == repr(estimator)
    np.testing.assert_array_equal(loaded.predict(ranking.X), estimator.predict(ranking.X))
    for name in stored_names(estimator):
        value = getattr(estimator, name)
        if name.endswith("_"):
            np.testing.assert_equal(getattr(loaded, name), value, err_msg=name)
            assert type(getattr(loaded, name)) is type(value), name
    assert set(vars(loaded)) == stored_names(estimator)


def stored_names(model):
    """What a file has of a model: all but where it was fitted."""
    return set(vars(model)) - set(getattr(model, "_not_stored", ()))


def test_notes_are_kept_beside_the_model(ranking, tmp_path):
    ranker = ranksvm.RankSVM(C=0.1).fit(ranking.X, ranking.y, qid=ranking.qid)
    sums = np.array([[0.1, np.nan], [3.0, -0.0]])
    persistence.save(ranker, tmp_path / "model", notes={"sums": sums, "name": "a", "many": [1, {"x": 2.5}]})
    notes = persistence.read_notes(tmp_path / "model")
    assert (notes["name"], notes["many"]) == ("a", [1, {"x": 2.5}])
    np.testing.assert_array_equal(notes["sums"], sums)
    np.testing.assert_array_equal(ranksvm.load(tmp_path / "model").coef_, ranker.coef_)
    persistence.save(ranker, tmp_path / "model")
    assert persistence.read_notes(tmp_path / "model") is None
    with pytest.raises(OptionError, match=r"notes\['f'\] is .*print"):
        persistence.save(ranker, tmp_path / "model", notes={"f": print})


def test_a_pipeline_with_a_query_scaler_comes_back(ranking, tmp_path):
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(ranksvm.QueryStandardScaler(), ranksvm.RankSVM(C=0.01))
        pipeline.fit(ranking.X, ranking.y, qid=ranking.qid)
        persistence.save(pipeline, tmp_path / "model")
        loaded = ranksvm.load(tmp_path / "model")
        expected = pipeline.predict(ranking.X, qid=ranking.qid)
        np.testing.assert_array_equal(loaded.predict(ranking.X, qid=ranking.qid), expected)


def test_a_loaded_ranker_fits_again(ranking, tmp_path):
    ranker = ranksvm.RankSVM(C=0.1, warm_start=True).fit(ranking.X, ranking.y, qid=ranking.qid)
    ranker.save(tmp_path / "model")
    again = ranksvm.load(tmp_path / "model").fit(ranking.X, ranking.y, qid=ranking.qid)
    assert again.n_iter_ == 0
    assert clone(again).get_params() == ranker.get_params()


def test_a_ranker_of_a_data_frame_keeps_its_names(ranking, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ranking.X, columns=list("abcdef"))
    ranker = ranksvm.RankSVM(C=0.1).fit(frame, ranking.y, qid=ranking.qid)
    ranker.save(tmp_path / "model")
    loaded = ranksvm.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(frame), ranker.predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("path", sorted(RELEASED.glob("*.rsvm")), ids=lambda path: path.name)
def test_models_of_every_released_format_load(path):
    model = ranksvm.load(path)
    assert list(model.named_steps) == ["scaler", "ranker"]
    np.testing.assert_array_equal(model.predict([[2.0, 2.0], [3.0, 1.0]]), [0.25, -0.5])
    assert model.named_steps["ranker"].C == 0.5


KERNEL_MODELS = [
    *({"kernel": kernel} for kernel in ("rbf", "poly", "linear", "laplacian", "cosine", "precomputed")),
    {"approximation": "nystroem", "n_components": 8, "random_state": 0},
    {"approximation": "nystroem", "n_components": 8, "random_state": 0, "kernel": "linear"},
    {"approximation": "fourier", "n_components": 8, "random_state": 0},
    {"approximation": "fourier", "n_components": 8, "random_state": 0, "kernel": "laplacian"},
]


@pytest.mark.parametrize("options", KERNEL_MODELS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_a_kernel_model_scores_as_before(options, form, X, tmp_path):
    if options.get("kernel") == "precomputed":
        if form is not np.asarray:
            pytest.skip("a precomputed kernel is dense")
        given = X @ X.T
    else:
        given = form(np.where(X > 0, X, 0.0))
    y = np.arange(20) % 3
    model = ranksvm.KernelRankSVM(0.01, gamma=1e-4, **options).fit(given, y, qid=np.arange(20) // 10)
    model.save(tmp_path / "model")
    loaded = ranksvm.load(tmp_path / "model")
    assert type(loaded) is ranksvm.KernelRankSVM
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(given), model.predict(given))
    fitted = {name for name in stored_names(model) if name.endswith("_")}
    assert {name for name in vars(loaded) if name.endswith("_")} == fitted
    if "support_vectors_" in fitted:
        assert type(loaded.support_vectors_) is type(model.support_vectors_)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_callable_kernel_cannot_be_saved_but_pickled(X, tmp_path):
    model = ranksvm.KernelRankSVM(kernel=linear_kernel).fit(X, np.arange(20) % 3)
    with pytest.raises(
        OptionError, match=r"parameter 'kernel' of KernelRankSVM is linear_kernel .*Use pickle or joblib"
    ):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_sparse_matrices_are_checked(X, tmp_path):
    path = tmp_path / "model"
    model = ranksvm.KernelRankSVM().fit(sp.csr_matrix(X), np.arange(20) % 3)
    model.save(path)

    def point_beyond(header):
        header["model"]["fitted"]["support_vectors_"]["shape"][1] = 2

    rewrite_header(path, point_beyond)
    with pytest.raises(ModelFileError, match="cannot be rebuilt"):
        ranksvm.load(path)
    model.support_vectors_ = model.support_vectors_.tocsc()
    with pytest.raises(OptionError, match="'support_vectors_' of KernelRankSVM is a sparse matrix in csc format"):
        model.save(path)


def test_the_output_of_steps_is_kept(tmp_path):
    """A loaded Pipeline made arrays of what the saved one made DataFrames of."""
    data = make_ranking(n_queries=6, n_docs=5, n_features=3, random_state=0)
    frame = pd.DataFrame(data.X, columns=["a", "b", "c"])
    model = make_pipeline(StandardScaler(), RankSVM(C=0.1)).set_output(transform="pandas")
    model.fit(frame, data.y, ranksvm__qid=data.qid)
    path = tmp_path / "model.rsvm"
    ranksvm.save(model, path)
    loaded = ranksvm.load(path)
    assert isinstance(loaded[0].transform(frame), pd.DataFrame)
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    rewrite_header(path, lambda header: header["model"]["params"]["steps"][0]["items"][1].update(output="paper"))
    with pytest.raises(ModelFileError, match="the output of its StandardScaler is 'paper'"):
        ranksvm.load(path)
