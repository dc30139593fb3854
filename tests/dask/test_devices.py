"""``device=`` on workers: a HostDevice in the place of their GPUs, on all of them, on some, on none."""

import numpy as np
import pytest

pytest.importorskip("distributed")

from ranksvm import RankSVM
from ranksvm.dask import DaskRankSVM, DaskRankSVMCV
from ranksvm.exceptions import DeviceError, OptionError
from ranksvm.terms.device.term import DeviceTerm

pytestmark = pytest.mark.usefixtures("client", "host_devices")


def with_devices(client, kind, workers=None):
    """Let workers open a kind of device, and count the terms that they make on it."""

    def register(kind):
        from ranksvm.device import names
        from ranksvm.device.host import HostDevice
        from ranksvm.terms.device import term

        names.OPENERS[kind] = lambda number: HostDevice(name=f"{kind}:{number}")
        plain = term.DeviceTerm.__init__
        term.n_made = 0

        def counted(self, *arguments, **options):
            term.n_made += 1
            plain(self, *arguments, **options)

        term.DeviceTerm.__init__ = counted

    def n_made():
        from ranksvm.terms.device import term

        return getattr(term, "n_made", 0)

    client.run(register, kind, workers=workers)
    return lambda: list(client.run(n_made).values())


@pytest.fixture(autouse=True)
def only_here(client, monkeypatch):
    """Other tests get other workers, and this process computes on no device."""
    monkeypatch.setattr(DeviceTerm, "__init__", lambda *arguments, **options: pytest.fail("a device of the client"))
    yield
    client.restart()


def test_parts_are_computed_on_the_devices_of_workers(client, data, parts_of, monkeypatch):
    n_terms = with_devices(client, "host")
    X, y, qid = parts_of(data)
    for options in ({}, {"loss": "hinge", "tol": 1e-7}):
        options = {"C": 0.05, "tol": 1e-9, **options}
        fit = DaskRankSVM(device="host", n_partitions=4, **options).fit(X, y, qid=qid)
        expected = RankSVM(**options).fit(data.X, data.y, qid=data.qid)
        assert fit.objective_ == pytest.approx(expected.objective_, rel=2 * options["tol"])
        assert fit.converged_
    n_of_fits = sum(n_terms())
    assert n_of_fits >= 2 * 4  # more where a part is needed on another worker
    search = DaskRankSVMCV(Cs=[1e-3, 1e-1], cv=2, device="host").fit(X, y, qid=qid)
    assert sum(n_terms()) > n_of_fits
    np.testing.assert_allclose(search.scores_, DaskRankSVMCV(Cs=[1e-3, 1e-1], cv=2).fit(X, y, qid=qid).scores_)


def test_workers_without_the_device_use_their_processor(client, data, parts_of):
    X, y, qid = parts_of(data)
    with pytest.raises(DeviceError, match=r"no worker has the device 'cuda'; of tcp://"):
        DaskRankSVM(device="cuda").fit(X, y, qid=qid)
    first = next(iter(client.scheduler_info()["workers"]))

    def broken():
        from ranksvm.device import names
        from ranksvm.exceptions import DeviceError

        def refuse(number):
            raise DeviceError("there is none")

        names.OPENERS["host"] = refuse

    client.run(broken)
    n_terms = with_devices(client, "host", [first])
    with pytest.warns(UserWarning, match=r"1 of 2 workers do not have the device 'host'"):
        fit = DaskRankSVM(C=0.05, tol=1e-9, device="host", n_partitions=4).fit(X, y, qid=qid)
    assert sum(n_terms()) >= 1
    expected = RankSVM(C=0.05, tol=1e-9).fit(data.X, data.y, qid=data.qid)
    assert fit.objective_ == pytest.approx(expected.objective_, rel=1e-9)


def test_what_is_refused(data, parts_of):
    X, y, qid = parts_of(data)
    with pytest.raises(OptionError, match="start a worker for each GPU"):
        DaskRankSVM(device=["cuda:0", "cuda:1"]).fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="device must be"):
        DaskRankSVM(device="gpu").fit(X, y, qid=qid)
    fit = DaskRankSVM(device="auto").fit(X, y, qid=qid)
    np.testing.assert_array_equal(fit.coef_, DaskRankSVM().fit(X, y, qid=qid).coef_)
