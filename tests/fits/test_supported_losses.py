"""Every loss, solver, place of the rows and precision: the optimum over explicit pairs, or a refusal.

Labels and listed pairs are the same problem; two blocks (`Preferences`) have two rows a query.
"""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from oracle import ExplicitPairs, LogisticFunction
from ranksvm import Preferences, RankingData, RankSVM
from ranksvm.data import ComparablePairs, Queries, as_design_matrix, partition
from ranksvm.datasets import file_data
from ranksvm.device import names
from ranksvm.device.host import HostDevice
from ranksvm.estimators.base.inputs import read_training_data, resolve_files
from ranksvm.estimators.base.ranker import linear_options
from ranksvm.exceptions import OptionError
from ranksvm.fits.linear import linear_problem, linear_training_set
from ranksvm.fits.partitioned import PartitionedProblem
from ranksvm.fits.training_set import TrainingArguments
from ranksvm.losses import LOSSES, LossSpec
from ranksvm.objectives import PairDual
from ranksvm.terms.device.term import DeviceTerm
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.serial_backend import SerialBackend
from ranksvm.terms.parts.term import PartitionedTerm

C, WIDTH, TOL = 0.3, 0.6, 1e-6
FUNCTION = LogisticFunction()
OWN = "one of the user's own"
# what "auto" may choose besides
LINEAR_SOLVERS = ("auto", "newton", "tron", "dual", "direct")
SOLVERS = (*LINEAR_SOLVERS, "adaptive")
PLACES = ("dense", "csr", "listed", "two blocks", "file", "parts", "device")
PRECISIONS = (np.float64, np.float32)


class Data(NamedTuple):
    """Documents in queries, and pairs of them."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    oracle: ExplicitPairs

    @property
    def pairs(self):
        return np.column_stack([self.oracle.upper, self.oracle.lower])


def spec_of(loss):
    if loss == OWN:
        return LossSpec("custom", function=FUNCTION)
    return LossSpec(loss, WIDTH if loss == "huber" else None)


@cache
def data_of(loss, precision, two_rows):
    """The data, and the pairs with a loss that the oracle has."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.7)
    X = X.astype(precision)
    qid = np.arange(60) // 2 if two_rows else np.arange(60) // 10
    y = (np.arange(60) + 1) % 2.0 if two_rows else np.digitize(X[:, 0] + rng.normal(size=60), [-0.5, 0.7]).astype(float)
    function = FUNCTION if loss in (OWN, "logistic") else None
    return Data(X, y, qid, ExplicitPairs(y, qid, X, width=WIDTH if loss == "huber" else None, function=function))


def primal(loss, oracle, w):
    return oracle.hinge_value(w, C) if loss == "hinge" else oracle.value(w, C)


@cache
def optimum(loss, precision, two_rows):
    """The smallest value of the problem, from its explicit pairs by general minimizers."""
    oracle = data_of(loss, precision, two_rows).oracle
    options = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 100_000, "maxfun": 1_000_000}
    if loss != "hinge":

        def smooth(w):
            return oracle.value(w, C), oracle.gradient(w, C)

        return scipy.optimize.minimize(smooth, np.zeros(4), jac=True, method="L-BFGS-B", options=options).fun
    D = oracle.X[oracle.upper] - oracle.X[oracle.lower]

    def dual(alpha):
        z = D.T @ alpha
        return 0.5 * z @ z - alpha.sum(), D @ z - 1.0

    bounds = [(0.0, C)] * len(D)
    found = scipy.optimize.minimize(dual, np.zeros(len(D)), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return -found.fun


def unsupported(loss, solver, place):
    """The sentence that refuses a cell of the table; None if it is to be solved."""
    if place in ("parts", "file") and solver == "dual":
        return "solver='dual' has a variable for each pair"
    if place == "device" and solver == "direct":
        return "device='host' has no solver 'direct'"
    if place in ("parts", "file", "two blocks") and solver == "direct":
        return "solver='direct' is for X as one array or sparse matrix"
    if place == "device" and solver == "dual":
        return "device='host' has no solver 'dual'"
    if place == "device" and loss == OWN:
        return "device='host' cannot evaluate a loss that is given as Python functions"
    if place == "device" and loss not in DeviceTerm.supported_losses:
        return f"device='host' has no loss '{loss}'"
    if solver == "dual" and loss not in PairDual.supported_losses:
        return "solver='dual' is for the losses 'squared_hinge', 'hinge', 'huber', not for"
    return None


def problem_of(data, loss, solver, place, tmp_path):
    """The problem of a cell, made as estimators do."""
    model = RankSVM(C, tol=TOL, loss=FUNCTION if loss == OWN else loss, huber_width=WIDTH)
    model.set_params(device="host" if place == "device" else "cpu")
    model.set_params(solver=solver if solver in LINEAR_SOLVERS else "auto")
    options = replace(linear_options(model), solver=solver)
    given = TrainingArguments(data.X, data.y, qid=data.qid)
    if place == "csr":
        given = replace(given, X=sp.csr_matrix(data.X))
    elif place == "listed":
        given = replace(given, y=None, pairs=data.pairs)
    elif place == "two blocks":
        given = TrainingArguments(Preferences(data.X[data.oracle.upper], data.X[data.oracle.lower]))
    elif place == "file":
        RankingData(data.X, data.y, data.qid).save(tmp_path / "data.rsd")
        given = TrainingArguments(RankingData.load(tmp_path / "data.rsd"))
    elif place == "parts":
        pairs = ComparablePairs.from_labels(Queries.from_qid(data.qid, len(data.y)), data.y)
        backend = SerialBackend()
        backend.put([Part(data.X[part.rows], part.renumbered()) for part in partition(pairs, 3)])
        return PartitionedProblem(PartitionedTerm(backend, options.loss), options)
    given = read_training_data(model, resolve_files(given, None))
    return linear_problem(linear_training_set(given, options), options)


@pytest.fixture(autouse=True)
def host_device_and_files(monkeypatch):
    """A device of the host's, and data that stay in their files."""
    device = HostDevice()
    monkeypatch.setitem(names.OPENERS, "host", lambda number: device)
    monkeypatch.setattr(file_data, "in_file", lambda path, limit: True)


@pytest.mark.parametrize("precision", PRECISIONS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", [*LOSSES, OWN])
def test_every_cell_is_the_oracle_or_refused(loss, solver, place, precision, tmp_path):
    two_rows = place == "two blocks"
    data = data_of(loss, precision, two_rows)
    refusal = unsupported(loss, solver, place)
    if refusal is not None:
        with pytest.raises(OptionError) as error:
            problem_of(data, loss, solver, place, tmp_path)
        assert str(error.value).startswith(refusal)
        assert str(error.value).count(". ") <= 1
        return
    problem = problem_of(data, loss, solver, place, tmp_path)
    result = problem.solve(C)
    least = optimum(loss, precision, two_rows)
    assert result.value == pytest.approx(primal(loss, data.oracle, result.w), rel=1e-9)
    assert -1e-8 * least <= result.value - least <= result.gap + 1e-8 * least
    assert result.gap <= TOL * result.value


@pytest.mark.parametrize("loss", LOSSES)
def test_a_device_term_has_no_other_loss_than_it_declares(loss):
    """What reaches the kernels by another way than an estimator is refused, too."""
    pairs = ComparablePairs.from_labels(Queries.from_qid(None, 3), np.arange(3.0))
    loss_of_pairs = spec_of(loss).with_pairs(pairs)
    if loss in DeviceTerm.supported_losses:
        DeviceTerm(HostDevice(), as_design_matrix(np.eye(3)), loss_of_pairs)
        return
    with pytest.raises(OptionError, match=f"the kernels of a device have the losses .*, not '{loss}'"):
        DeviceTerm(HostDevice(), as_design_matrix(np.eye(3)), loss_of_pairs)


def test_what_is_declared_are_losses():
    assert set(PairDual.supported_losses) <= set(LOSSES)
    assert set(DeviceTerm.supported_losses) <= set(LOSSES)
