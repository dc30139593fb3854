"""A cluster of two processes for all tests in this folder, and data in parts."""

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
    # The tests kill workers, so a task may lose ten of them. Some time after a worker was lost, a LocalCluster checks
    # whether it is back, and gives it up if it is absent (for example because it was killed again). The long timeout
    # prevents this.
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
    """Sorted queries of about 15 rows; the borders of parts of 100 rows divide some of them."""
    return make_ranking(n_queries=40, n_docs=15, n_features=6, random_state=0)


def cut(values, chunk=100):
    """A dask array with ``chunk`` rows in each part."""
    return da.from_array(values, chunks=(chunk, *np.shape(values)[1:]))


@pytest.fixture(scope="session")
def parts_of():
    def parts(data, chunk=100):
        return cut(data.X, chunk), cut(data.y, chunk), cut(data.qid, chunk)

    return parts
