"""The backend on a cluster beside the serial one: the same parts, the same bits."""

import numpy as np
import pytest

pytest.importorskip("distributed")

from ranksvm.dask import backend as module
from ranksvm.dask.backend import DaskBackend
from ranksvm.dask.cluster import Cluster
from ranksvm.objectives import LinearObjective
from ranksvm.solvers import newton
from ranksvm.terms.parts.serial_backend import SerialBackend
from ranksvm.terms.parts.term import PartitionedTerm
from term_checks import TermProblem, parts_of


@pytest.mark.parametrize("kind", [{}, {"storage": "csr"}, {"listed": True}], ids=["dense", "csr", "listed"])
@pytest.mark.parametrize("gathered", [64, 2])
def test_bits_are_those_of_the_serial_backend(client, monkeypatch, kind, gathered):
    """Also where sums are added up on the workers first."""
    monkeypatch.setattr(module, "GATHERED", gathered)
    monkeypatch.setattr(module, "LARGE_ARGUMENTS", 64 << 10 if gathered == 64 else 100)
    problem = TermProblem("hinge", n=240, **kind)
    on_cluster = DaskBackend(Cluster(client, 60.0))
    on_cluster.put(client.scatter(parts_of(problem.X, problem.pairs, 5)))
    serial = SerialBackend()
    serial.put(parts_of(problem.X, problem.pairs, 5))
    assert on_cluster.info() == serial.info()
    fits = []
    for backend in (serial, on_cluster):
        term = PartitionedTerm(backend, problem.spec)
        objective = LinearObjective(term, 0.1, problem.spec.first_width, problem.spec.smoothed)
        fits.append(newton(objective, np.zeros(6), tol=1e-4))
        term.close()
    np.testing.assert_array_equal(fits[0].w, fits[1].w)
    assert fits[0].history == fits[1].history
    assert on_cluster.n_repeated == 0


def test_parts_stay_where_they_are(client):
    """Dask takes tasks of few parts for roots of a graph, and sends these to idle workers, their parts with them."""
    problem = TermProblem("squared_hinge", n=240)
    backend = DaskBackend(Cluster(client, 60.0))
    backend.put(client.scatter(parts_of(problem.X, problem.pairs, 4)))
    before = client.who_has(backend.parts)
    for _ in range(10):
        term = PartitionedTerm(backend, problem.spec)
        term.evaluate(np.zeros(6), None)
        term.close()
    assert client.who_has(backend.parts) == before
