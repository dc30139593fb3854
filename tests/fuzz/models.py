"""Fuzz model files of every class: load and use files with one or two changed fields and matching checksums."""

import copy
import io
import json
import warnings
import zipfile

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import ranksvm
from fuzz.mutations import changed_array, changed_bytes, changed_json, pick
from ranksvm.exceptions import RankSVMError
from ranksvm.model_files import persistence

X = np.random.default_rng(0).normal(size=(60, 4))
Y, QID = np.arange(60) % 3, np.repeat(np.arange(6), 10)
SPARSE = sp.csr_matrix(np.where(np.abs(X) > 1, X, 0.0))
GIVEN = {"precomputed": X @ X.T}


def _models():
    kernels = ("rbf", "poly", "laplacian", "linear", "precomputed")
    yield ranksvm.RankSVM()
    yield ranksvm.RankSVM(solver="dual", loss="hinge")
    yield ranksvm.RankSVMCV(Cs=[0.1, 1], cv=ranksvm.QueryKFold(2))
    yield ranksvm.AdditiveRankSVM(max_bins=4, categorical=[0], interactions=2)
    yield ranksvm.AdditiveRankSVMCV(Cs=[0.1, 1], step_weights=[0.5], cv=ranksvm.QueryKFold(2))
    yield from (ranksvm.KernelRankSVM(kernel=kernel) for kernel in kernels)
    yield ranksvm.KernelRankSVM(approximation="fourier", n_components=8)
    yield ranksvm.KernelRankSVM(approximation="nystroem", n_components=8)
    yield ranksvm.KernelRankSVMCV(Cs=[0.1, 1], cv=2, gammas=[0.1, 1])
    yield ranksvm.FactorizedRankSVM(max_epochs=5)
    yield ranksvm.RegularizedRankSVM(max_iter=5)
    yield from (ranksvm.SOLARRanker(order, average=order == 2, decay=0.9) for order in (1, 2))
    yield ranksvm.SOLARRanker(2, covariance="diagonal")
    yield ranksvm.PRanker(average=True)
    yield ranksvm.PairwisePerceptronRanker()
    yield ranksvm.PerceptronCommitteeRanker(3)
    for scaler in (StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), ranksvm.QueryMinMaxScaler()):
        yield Pipeline([("scaler", scaler), ("ranker", ranksvm.RankSVM())])


class Target:
    """Load and use changed model files."""

    def __init__(self, folder):
        self.path = folder / "model"
        self.files = []
        warnings.simplefilter("ignore")
        for model in _models():
            for rows in (X, SPARSE):
                precomputed = getattr(model, "kernel", None) == "precomputed"
                if rows is SPARSE and (precomputed or isinstance(model, Pipeline)):
                    continue
                rows = GIVEN["precomputed"] if precomputed else rows
                named = {"ranker__qid": QID} if isinstance(model, Pipeline) else {"qid": QID}
                model.fit(rows, Y, **named)
                persistence.save(model, self.path)
                self.files.append((self.path.read_bytes(), rows))

    def run(self, random):
        """Load and use one changed file."""
        content, rows = pick(random, self.files)
        changed = changed_bytes if random.random() < 0.15 else _changed_fields
        content = changed(random, content)
        self.path.write_bytes(content)
        try:
            model = ranksvm.load(self.path)
        except RankSVMError:
            return
        _use(model, rows, self.path)


def _changed_fields(random, content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members.pop("header.json"))
    for _ in range(int(random.integers(1, 3))):
        if random.random() < 0.5 and members:
            name = pick(random, sorted(members))
            buffer = io.BytesIO()
            try:
                np.save(buffer, changed_array(random, np.load(io.BytesIO(members[name]))), allow_pickle=False)
            except Exception:  # after an earlier change, the member is not an array
                continue
            members[name] = buffer.getvalue()
        elif random.random() < 0.1 and members:
            name = pick(random, sorted(members))
            members[name] = changed_bytes(random, members[name])
        else:
            part = pick(random, ["fitted", "fitted", "params", "model", "nested"])
            if part == "nested":  # up to a depth at which even its checksum cannot be computed
                nested = None
                for _ in range(int(pick(random, [30, 300, 700]))):
                    nested = [nested]
                header["model"][pick(random, ["fitted", "params", "class", "x"])] = nested
                continue
            inner = header["model"] if part == "model" else header["model"].get(part)
            try:
                changed_json(random, inner)
            except (AttributeError, TypeError):
                continue
    header["sha256"] = {name: persistence.hashlib.sha256(member).hexdigest() for name, member in members.items()}
    header["header_sha256"] = persistence._header_checksum(header)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        encoded = json.dumps(header).encode()
        if random.random() < 0.02:
            depth = int(random.integers(900, 1100))
            encoded = encoded[:-1] + b', "x": ' + b"[" * depth + b"]" * depth + b"}"
        for name, member in {"header.json": encoded, **members}.items():
            archive.writestr(name, member)
    return buffer.getvalue()


def _use(model, rows, path):
    """Call methods of the model; only errors of ranksvm are accepted."""
    dense = rows.toarray() if sp.issparse(rows) else rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in (
            lambda m: _finite(m.predict(rows)),
            lambda m: m.predict(dense),
            lambda m: m.rank(rows, QID),
            lambda m: m.score(rows, Y, **({} if isinstance(m, Pipeline) else {"qid": QID})),
            lambda m: m.coef_table(),
            lambda m: m.explain(rows, QID).pair(1, 0),
            lambda m: m.feature_importance(rows, QID),
            lambda m: m.dual_coef(rows, Y, QID)[0].alpha,
            lambda m: m.low_rank_coef(rows, Y, QID)[0].alpha,
            lambda m: m.prune(0.1),
            lambda m: m.covariance_,
            lambda m: m.predict_then_learn(rows, Y, qid=QID),
            lambda m: m.partial_fit(rows, Y, qid=QID),
            lambda m: m.partial_fit_pairs(rows, [[0, 1]]),
            lambda m: _finite(m.predict(rows)),
            lambda m: _refitted(m, rows),
            lambda m: repr(m),
            lambda m: persistence.save(m, path),
        ):
            own = copy.copy(model)
            try:
                call(own)
            except RankSVMError:
                pass
            except AttributeError as error:
                if not any(part in str(error) for part in ("object has no attribute", "order 2", "'Pipeline' has no")):
                    raise
                known = hasattr(type(own), error.name or "") and not isinstance(own, Pipeline)
                if known and error.name not in ("coef_", "covariance_"):
                    raise


def _refitted(model, rows):
    """Fit with a warm start from the loaded model."""
    if "warm_start" in model.get_params():
        model.warm_start, model.max_iter = True, 2
        model.fit(rows, Y, qid=QID)


def _finite(scores):
    assert np.isfinite(scores).all(), "scores that are not finite"
