"""One cluster of two processes for all tests here, and data in parts."""

import logging

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask
import dask.array as da
from distributed import Client, LocalCluster

from ranksvm import make_ranking


@pytest.fixture(scope="session")
def client():
    # Ten workers may end while they have a task: kills are what is tested. A while after a worker was lost, a
    # LocalCluster looks for it, and ends it for good if it is absent just then, because it was killed again: not here.
    settings = {
        "distributed.scheduler.allowed-failures": 10,
        "distributed.worker.daemon": True,
        "distributed.deploy.lost-worker-timeout": "3600s",
    }
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    levels = {handler: handler.level for handler in logging.getLogger().handlers}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        # the cluster silences pytest's handlers too, for all tests that follow
        for handler, level in levels.items():
            handler.setLevel(level)
        yield client


@pytest.fixture(scope="session")
def data():
    """Queries of about 15 rows, sorted; parts of 100 rows cut some of them."""
    return make_ranking(n_queries=40, n_docs=15, n_features=6, random_state=0)


def cut(values, chunk=100):
    """A dask array of parts of so many rows."""
    return da.from_array(values, chunks=(chunk, *np.shape(values)[1:]))


@pytest.fixture(scope="session")
def parts_of():
    def parts(data, chunk=100):
        return cut(data.X, chunk), cut(data.y, chunk), cut(data.qid, chunk)

    return parts
