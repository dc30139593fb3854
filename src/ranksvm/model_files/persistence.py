"""Save and load fitted models: one zip file of plain arrays and a JSON header, without pickle.

A model file holds ``header.json`` and one ``.npy`` file per array (so `numpy.load` reads it too). Nothing in it is
executed: loading creates an object of a registered class, passes the parameters to its constructor and sets its fitted
attributes. Checksums detect a truncated or altered file; they are not a signature.
"""

import contextlib
import hashlib
import importlib
import inspect
import io
import json
import os
import re
import struct
import tokenize
import zipfile
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from ranksvm._util.atomic_files import atomic_write
from ranksvm._util.checks import is_sparse
from ranksvm._util.sparse_format import check_sparse_format
from ranksvm._util.types import SparseMatrix
from ranksvm.exceptions import ModelFileError, OptionError
from ranksvm.model_files.registry import RENAMED, SAVABLE, STORABLE
from ranksvm.model_files.schema import SKLEARN_CLASSES, SKLEARN_SCHEMAS, SchemaError, checked_attributes, schema_of

__all__ = ["save", "load", "load_as", "parameters_of_object", "read_header", "read_notes"]

FORMAT = "ranksvm-model"
VERSION = 1

# Types of arrays and scalars: numbers and text of fixed width.
_KINDS = "biufU"
# Outputs that a transformer can be set to (`set_output`).
_OUTPUTS = ("default", "pandas", "polars")
# Exceptions raised while parsing corrupt headers or arrays.
_MALFORMED: tuple[type[Exception], ...] = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, SyntaxError, TypeError),
    *(ValueError, struct.error, tokenize.TokenError, zipfile.BadZipFile),
)
_UNREADABLE: tuple[type[Exception], ...] = (OSError, *_MALFORMED)
_HEADER = "header.json"
# Every member has the same date, so that the same model gives the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
_FITTED_NAME = re.compile(r"[A-Za-z]\w*_|_[A-Za-z]\w*_")
# Location of a model: the path of a file, or an open binary file such as `io.BytesIO`.
Place = str | os.PathLike[str] | IO[bytes]


def save(model: object, path: Place, *, notes: dict[str, Any] | None = None) -> None:
    """Write a model to one file, atomically, or to a binary file object.

    The parameters and the fitted attributes (their names end in an underscore) are written. The same model gives the
    same bytes.

    Parameters
    ----------
    model : estimator
        An estimator or scaler of ranksvm, one of scikit-learn's scalers (StandardScaler, MinMaxScaler,
        MaxAbsScaler, RobustScaler), or a Pipeline of these.
    path : str, path-like or binary file object
        File to write; an existing file is replaced. Or an open file, such as `io.BytesIO`, at whose position the model
        is written.
    notes : dict of str to object, optional
        Data to store with the model: numbers, strings, arrays, lists and dicts; `read_notes` returns them.

    Raises
    ------
    OptionError
        When the model is of another class, or a parameter or attribute does not consist of numbers, strings, arrays,
        lists and dicts (a function, for instance); the message names it.
    OSError
        When the folder does not exist or the file cannot be written.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> import os, ranksvm, tempfile
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), ranksvm.RankSVM(C=0.01)).fit(data.X, data.y, ranksvm__qid=data.qid)
    >>> path = os.path.join(tempfile.mkdtemp(), "pipeline.rsvm")
    >>> ranksvm.save(model, path)
    >>> bool((ranksvm.load(path).predict(data.X) == model.predict(data.X)).all())
    True
    """
    from importlib.metadata import version  # does not import scikit-learn; not needed to load

    import ranksvm

    arrays: dict[str, np.ndarray] = {}
    encoded = _encode_object(model, type(model).__name__, "", arrays)
    encoded_notes = None if notes is None else _encode(notes, "notes", "notes", arrays)
    members = {f"{name}.npy": _npy_bytes(array) for name, array in arrays.items()}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": {
            "ranksvm": ranksvm.__version__,
            "numpy": np.__version__,
            "scikit-learn": version("scikit-learn"),
        },
        "model": encoded,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in members.items()},
    }
    if encoded_notes is not None:
        header["notes"] = encoded_notes
    header["header_sha256"] = _header_checksum(header)
    _write_zip(path, {_HEADER: json.dumps(header, indent=1).encode(), **members})


def load(path: Place) -> Any:
    """Read a model written by `save`.

    Parameters
    ----------
    path : str, path-like or binary file object
        The file; an open one is read from its position to its end.

    Returns
    -------
    estimator
        A new object of the saved class, with the same fitted attributes.

    Raises
    ------
    ModelFileError
        When the file is not a model file, is truncated or altered, was written in a newer format, or names a class that
        this version of ranksvm does not know.
    TypeError
        When ``path`` is neither a path nor a binary file object.
    OSError
        When the file cannot be opened.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> import os, ranksvm, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.rsvm")
    >>> ranker = ranksvm.RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> ranker.save(path)
    >>> bool((ranksvm.load(path).coef_ == ranker.coef_).all())
    True
    """
    return load_as(path, {})


def load_as(path: Place, classes: Mapping[str, type]) -> Any:
    """Read a model as `load` does, but as an object of another class.

    Parameters
    ----------
    path : str, path-like or binary file object
        The file; an open one is read from its position to its end.
    classes : mapping of str to type
        Name of a saved class -> the class to use instead; models of other classes are loaded as they are.

    Returns
    -------
    object
        The model.

    Raises
    ------
    ModelFileError, TypeError, OSError
        As in `load`.
    """
    header, arrays = _read(path)
    decode = _DECODERS[header["version"]]
    try:
        model = decode(header["model"], arrays, classes)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except SchemaError as error:
        raise ModelFileError(f"{path}: the model file is damaged, or not one of ranksvm: {error}.") from error
    except _MALFORMED as error:
        raise ModelFileError(f"{path}: the model in it cannot be rebuilt ({_describe(error)}).") from error
    return model


def read_header(path: Place) -> dict[str, Any]:
    """Header of a model file, validated as in `load`: versions of the format and of the writer, class, parameters.

    Parameters
    ----------
    path : str, path-like or binary file object
        The file; an open one is read from its position to its end.

    Returns
    -------
    dict
        The parsed JSON.

    Raises
    ------
    ModelFileError
        As in `load`.
    """
    return _read(path)[0]


def read_notes(path: Place) -> dict[str, Any] | None:
    """The notes stored with a model, validated as in `load`.

    Parameters
    ----------
    path : str, path-like or binary file object
        The file; an open one is read from its position to its end.

    Returns
    -------
    dict or None
        The notes passed to `save`; None if there were none.

    Raises
    ------
    ModelFileError, TypeError, OSError
        As in `load`.

    Examples
    --------
    >>> import io
    >>> from ranksvm import SOLARRanker, read_notes, save
    >>> file = io.BytesIO()
    >>> save(SOLARRanker(), file, notes={"trained until": "2026-01-31"})
    >>> read_notes(io.BytesIO(file.getvalue()))
    {'trained until': '2026-01-31'}
    """
    header, arrays = _read(path)
    if "notes" not in header:
        return None
    try:
        return _decode(header["notes"], arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: the notes in it cannot be read: {error}") from error
    except _MALFORMED as error:
        raise ModelFileError(f"{path}: the notes in it cannot be read ({_describe(error)}).") from error


# ---- objects to JSON and arrays


def _encode_object(obj: object, where: str, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A dict with the ``"class"``, ``"params"`` and ``"fitted"`` of an object; ``"output"`` if it returns DataFrames.

    Its arrays are added to ``arrays`` under dotted names.
    """
    name = type(obj).__name__
    if type(obj) not in SAVABLE and type(obj) is not _class_named(name):
        raise OptionError(
            f"{where} is a {type(obj).__module__}.{name}, which a model file cannot hold. It can hold the estimators, "
            f"scalers and splitters of ranksvm and, of scikit-learn, {', '.join(SKLEARN_CLASSES)}."
        )
    left_out = getattr(obj, "_not_stored", ())
    fitted = {name: value for name, value in vars(obj).items() if _FITTED_NAME.fullmatch(name) and name not in left_out}
    encoded = {
        "class": name,
        "params": {
            key: _encode(value, f"parameter {key!r} of {where}", f"{prefix}{key}", arrays)
            for key, value in parameters_of_object(obj).items()
        },
        "fitted": {
            key: _encode(value, f"attribute {key!r} of {where}", f"{prefix}{key}", arrays)
            for key, value in fitted.items()
        },
    }
    if (output := getattr(obj, "_sklearn_output_config", {}).get("transform")) is not None:
        encoded["output"] = output  # the argument of `set_output`
    try:
        _check_fitted(obj, fitted)  # do not write what `load` would refuse
    except SchemaError as error:
        advice = "Keep other data in the notes of the file: save(..., notes={...})."
        raise OptionError(f"{where} cannot be stored: {error}. {advice}") from error
    return encoded


def parameters_of_object(obj: object) -> dict[str, Any]:
    """The hyper-parameters of an estimator, a transformer or a splitter, which a model file holds.

    Parameters
    ----------
    obj : object
        The object; it need not have scikit-learn's ``get_params``.

    Returns
    -------
    dict of str to object
        Name -> value, in the order of the names.
    """
    if hasattr(obj, "get_params"):
        return obj.get_params(deep=False)
    # sorted by name, as get_params sorts them
    return {name: getattr(obj, name) for name in sorted(inspect.signature(type(obj)).parameters)}


def _encode(value: object, where: str, name: str, arrays: dict[str, np.ndarray]) -> object:
    """A value as JSON: plain if JSON preserves the value, else ``{"type": ..., ...}``."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        # JSON has no nan and no infinities
        return value if np.isfinite(value) else {"type": "float", "value": repr(value)}
    if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
        return {"type": "scalar", "dtype": value.dtype.str, "value": _encode(value.item(), where, name, arrays)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, where, name, arrays)
    if is_sparse(value):
        return _encode_sparse(value, where, name, arrays)
    if isinstance(value, list):
        return [_encode(item, f"item {i} of {where}", f"{name}.{i}", arrays) for i, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"type": "tuple", "items": _encode(list(value), where, name, arrays)}
    if isinstance(value, dict):
        items = [
            [_encode(key, f"a key of {where}", "", {}), _encode(item, f"{where}[{key!r}]", f"{name}.{i}", arrays)]
            for i, (key, item) in enumerate(value.items())
        ]
        return {"type": "dict", "items": items}
    if _class_named(type(value).__name__) is not None:
        return {"type": "object", **_encode_object(value, where, f"{name}.", arrays)}
    described = getattr(value, "__qualname__", None) or type(value).__name__
    raise OptionError(
        f"{where} is {described!s} ({type(value).__name__}), which a model file cannot hold: "
        "numbers, strings, arrays, and lists and dicts of these can be saved. Use pickle or joblib for such a model."
    )


def _encode_array(array: np.ndarray, where: str, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if array.dtype.kind in _KINDS:
        name = _member_name(name, arrays)
        arrays[name] = array
        return {"type": "array", "name": name}
    if array.dtype == object and array.ndim == 1:
        return {"type": "objects", "items": _encode(array.tolist(), where, name, arrays)}
    raise OptionError(f"{where} is an array of dtype {array.dtype}, which a model file cannot hold.")


def _encode_sparse(matrix: SparseMatrix, where: str, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if matrix.format != "csr":
        raise OptionError(f"{where} is a sparse matrix in {matrix.format} format; a model file can hold csr ones.")
    from scipy import sparse

    parts = {
        part: _encode_array(getattr(matrix, part), where, f"{name}.{part}", arrays)
        for part in ("data", "indices", "indptr")
    }
    return {"type": "csr", "array": isinstance(matrix, sparse.sparray), "shape": list(matrix.shape), **parts}


def _member_name(name: str, arrays: dict[str, np.ndarray]) -> str:
    # Names help people who inspect the file; characters that file systems refuse, and duplicates, are avoided.
    safe = re.sub(r"[^\w.-]", "_", name) or "array"
    return safe if safe not in arrays else f"{safe}.{len(arrays)}"


# ---- JSON and arrays to objects


def _decode_object(encoded: dict[str, Any], arrays: dict[str, np.ndarray], classes: Mapping[str, type]) -> Any:
    name = encoded["class"]
    found = classes.get(name) or _class_named(name)
    if found is None:
        raise ModelFileError(
            f"it holds a {name!r}, which this version of ranksvm does not know; a newer version may: "
            "pip install --upgrade ranksvm."
        )
    params = {key: _decode(value, arrays) for key, value in encoded["params"].items()}
    obj = found(**params)
    _check_parameters(obj)
    earlier = getattr(found, "_earlier_names", {})
    fitted = {earlier.get(key, key): _decode(value, arrays) for key, value in encoded["fitted"].items()}
    if name in classes:  # the replacement class declares only the attributes that it needs
        fitted = {key: value for key, value in fitted.items() if key in schema_of(found)}
    for key, value in _check_fitted(obj, fitted).items():
        setattr(obj, key, value)
    if (output := encoded.get("output")) is not None:
        if output not in _OUTPUTS or not hasattr(obj, "set_output"):
            raise ModelFileError(f"the output of its {name} is {output!r}, which that class does not have.")
        obj.set_output(transform=output)
    for complete_or_check in ("_complete_older_file", "_check_loaded"):
        getattr(obj, complete_or_check, lambda: None)()
    return obj


def _check_fitted(obj: Any, fitted: dict[str, Any]) -> dict[str, Any]:
    """Check the fitted attributes against the class's declaration; SchemaError names the first invalid one."""
    name = type(obj).__name__
    if name == "Pipeline":
        # the last step may be an online ranker that has not learned anything yet
        are_fitted = [hasattr(step, "n_features_in_") for _, step in obj.steps if hasattr(step, "fit")]
        if any(are_fitted) and not all(are_fitted[:-1]):
            raise SchemaError("some steps of a Pipeline are fitted and others are not")
    schema = SKLEARN_SCHEMAS.get(name) or schema_of(type(obj))
    return checked_attributes(name, schema, fitted)


def _check_parameters(obj: Any) -> None:
    """Refuse invalid parameters of scikit-learn's classes; parameters of ranksvm are checked when they are used."""
    name = type(obj).__name__
    if name == "Pipeline":
        names = [step[0] for step in obj.steps if isinstance(step, tuple) and len(step) == 2]
        if len(names) != len(obj.steps) or not all(isinstance(name, str) for name in names) or not names:
            raise ModelFileError("the steps of its Pipeline are not a list of names and objects.")
        for _, step in obj.steps:
            if step != "passthrough" and step is not None and _class_named(type(step).__name__) is not type(step):
                raise ModelFileError(f"a step of its Pipeline is a {type(step).__name__}, not a scaler or ranker.")
    if name in SKLEARN_CLASSES:
        obj._validate_params()


def _decode(value: object, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value["type"]
    if kind == "float":
        return float(value["value"])
    if kind == "scalar":
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in _KINDS:
            raise ModelFileError(f"it holds a value of the type {dtype}, which model files do not have.")
        return dtype.type(_decode(value["value"], arrays))
    if kind == "array":
        return arrays[value["name"]]
    if kind == "csr":
        from scipy import sparse

        make = sparse.csr_array if value["array"] else sparse.csr_matrix
        parts = tuple(_decode(value[part], arrays) for part in ("data", "indices", "indptr"))
        matrix = make(parts, shape=tuple(value["shape"]))
        check_sparse_format(matrix, "a matrix in it")
        return matrix
    if kind == "objects":
        items = _decode(value["items"], arrays)
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array
    if kind == "tuple":
        return tuple(_decode(value["items"], arrays))
    if kind == "dict":
        return {_decode(key, arrays): _decode(item, arrays) for key, item in value["items"]}
    if kind == "object":
        return _decode_object(value, arrays, {})
    raise ModelFileError(f"it holds a value of the unknown type {kind!r}.")


# Format version -> the only function that rebuilds models from files of that version; one entry per released version.
_DECODERS: dict[int, Callable[[dict[str, Any], dict[str, np.ndarray], Mapping[str, type]], Any]] = {1: _decode_object}


def _class_named(name: str) -> type | None:
    """The class that a file names; None if it is not allowed."""
    if name in SKLEARN_CLASSES:
        return getattr(importlib.import_module(SKLEARN_CLASSES[name]), name)
    import ranksvm

    name = RENAMED.get(name, name)
    if name not in STORABLE and name in ranksvm.__all__:
        getattr(ranksvm, name)  # public names are imported on first use, and their classes register then
    return STORABLE.get(name)


# ---- the file


def _read(path: Place) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays (by name) of a model file, with all checksums verified."""
    content = _content(path)
    start = content[:4]
    if not start:
        raise ModelFileError(f"{path}: the file is empty, not a ranksvm model.")
    if start == b"rank":
        raise ModelFileError(f"{path}: not a ranksvm model file but, by its first bytes, a ranksvm data cache.")
    if not start.startswith(b"PK"):
        raise ModelFileError(
            f"{path}: not a ranksvm model file (those are zip archives with a {_HEADER}). "
            "Linear models of other programs are read by import_model (ranksvm import)."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if _HEADER not in archive.namelist():
                raise ModelFileError(f"{path}: a zip archive, but not a ranksvm model: it has no {_HEADER}.")
            if sum(member.file_size for member in archive.infolist()) > len(content):
                raise ModelFileError(f"{path}: not a ranksvm model: its members are compressed.")
            members = {name: archive.read(name) for name in archive.namelist()}
    except _UNREADABLE as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path}: the model file is truncated or damaged ({_describe(error)}).") from error
    header = _parse_header(path, members.pop(_HEADER))
    expected = header["sha256"]
    if set(expected) != set(members):
        different = ", ".join(sorted(set(expected) ^ set(members)))
        raise ModelFileError(f"{path}: the model file was altered: {different} missing or added.")
    for name, member in members.items():
        if hashlib.sha256(member).hexdigest() != expected[name]:
            raise ModelFileError(f"{path}: the model file was altered: {name} does not match its checksum.")
    try:
        arrays = {name.removesuffix(".npy"): _array(member) for name, member in members.items()}
    except _MALFORMED as error:
        raise ModelFileError(f"{path}: an array in the model file cannot be read ({_describe(error)}).") from error
    return header, arrays


def _array(member: bytes) -> np.ndarray:
    array = np.lib.format.read_array(io.BytesIO(member), allow_pickle=False)
    # texts of length 0 take no bytes, but memory as objects
    if array.size > len(member):
        raise ValueError(f"{len(member)} bytes cannot hold {array.size} values")
    return array


def _content(path: Place) -> bytes:
    """All bytes of a model file, or of a file object from its position."""
    if hasattr(path, "read"):
        content = path.read()
        if not isinstance(content, bytes):
            raise TypeError(f"a model file is binary, but the file object gives {type(content).__name__}.")
        return content
    if not isinstance(path, str | bytes | os.PathLike):
        # a number would be used as a file descriptor
        raise TypeError(f"path must be the path of a model file, got {type(path).__name__}: {path!r}.")
    with open(path, "rb") as file:
        return file.read()  # only once: the file may be a pipe


def _parse_header(path: Place, content: bytes) -> dict[str, Any]:
    try:
        header = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: the header of the model file is not JSON ({_describe(error)}).") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path}: not a ranksvm model file: its {_HEADER} does not identify it as one.")
    version = header.get("version")
    if not isinstance(version, int) or version not in _DECODERS:
        by = header.get("written_by")
        writer = by.get("ranksvm", "of an unknown version") if isinstance(by, dict) else "of an unknown version"
        raise ModelFileError(
            f"{path}: written in format version {version} by ranksvm {writer}; this ranksvm reads versions up to "
            f"{VERSION}. Upgrade it: pip install --upgrade ranksvm."
        )
    try:
        checksum = _header_checksum(header)
    except RecursionError as error:
        raise ModelFileError(f"{path}: the header of the model file is nested too deeply.") from error
    if header.get("header_sha256") != checksum:
        raise ModelFileError(f"{path}: the model file was altered: its header does not match its checksum.")
    for key in ("model", "sha256", "written_by"):
        if not isinstance(header.get(key), dict):
            raise ModelFileError(f"{path}: the header of the model file lacks {key!r}.")
    return header


def _header_checksum(header: dict[str, Any]) -> str:
    covered = {key: value for key, value in header.items() if key != "header_sha256"}
    return hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()


def _npy_bytes(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def _write_zip(path: Place, members: dict[str, bytes]) -> None:
    opened = contextlib.nullcontext(path) if hasattr(path, "write") else atomic_write(path)
    with opened as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), content)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
