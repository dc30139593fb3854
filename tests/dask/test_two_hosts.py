"""Two network namespaces as two hosts, one of which is cut off in the middle of a fit."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("distributed")

# Runs on the first host: a scheduler, a worker, the client. The second worker is on the other host.
FIRST_HOST = """
import json, subprocess, sys, zlib
import dask, dask.array as da
from distributed import Client, LocalCluster
from ranksvm import make_ranking
from ranksvm.dask import DaskRankSVM
from ranksvm.dask.backend import DaskBackend

if __name__ == "__main__":
    cut = json.loads(sys.argv[2])
    data = make_ranking(n_queries=40, n_docs=15, n_features=6, random_state=0)
    X, y, qid = (da.from_array(v, chunks=(100, *v.shape[1:])) for v in (data.X, data.y, data.qid))
    settings = {"distributed.scheduler.worker-ttl": "5s", "distributed.scheduler.allowed-failures": 10,
                "distributed.comm.timeouts.connect": "5s"}
    options = {"threads_per_worker": 1, "dashboard_address": None, "host": "10.231.77.1", "scheduler_port": 8786}
    with dask.config.set(settings), LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:
        print("ready", flush=True)
        client.wait_for_workers(2, timeout=120)
        fits = [DaskRankSVM(C=0.05, n_partitions=4).fit(X, y, qid=qid)]
        plain, n_rounds, hosts = DaskBackend._sum, [], []

        def with_cut(self, jobs):
            n_rounds.append(1)
            if len(n_rounds) == 3:
                owners = {worker for found in client.who_has(self.parts).values() for worker in found}
                hosts.extend(sorted(worker.split("//")[1].split(":")[0] for worker in owners))
                subprocess.run(cut, check=True)
            return plain(self, jobs)

        DaskBackend._sum = with_cut
        fits.append(DaskRankSVM(C=0.05, n_partitions=4).fit(X, y, qid=qid))
        print(json.dumps({"hosts": hosts, "bits": [zlib.crc32(fit.coef_.tobytes()) for fit in fits],
                          "histories": [fit.history_ for fit in fits]}), flush=True)
"""


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=False)


@pytest.fixture
def two_hosts():
    """The names of two namespaces, 10.231.77.1 and 10.231.77.2, joined by a cable."""
    first, second = (f"ranksvm-{os.getpid()}-{number}" for number in (1, 2))
    steps = [["netns", "add", first], ["netns", "add", second]]
    steps += [["link", "add", "cable1", "netns", first, "type", "veth", "peer", "name", "cable2", "netns", second]]
    for host, cable, number in ((first, "cable1", 1), (second, "cable2", 2)):
        steps += [["-n", host, "address", "add", f"10.231.77.{number}/24", "dev", cable]]
        steps += [["-n", host, "link", "set", device, "up"] for device in ("lo", cable)]
    try:
        for step in steps:
            try:
                done = ip(*step)
            except FileNotFoundError:
                pytest.skip("there is no program ip, which makes network namespaces")
            if done.returncode:
                pytest.skip(f"network namespaces are not permitted here: ip {' '.join(step)}: {done.stderr.strip()}")
        yield first, second
    finally:
        for name in (first, second):
            ip("netns", "delete", name)


@pytest.mark.slow
def test_a_host_that_is_cut_off(two_hosts, tmp_path):
    """The cable is unplugged while both hosts have parts: the fit goes on with those of one, to the same bits."""
    first, second = two_hosts
    script = tmp_path / "first_host.py"
    script.write_text(FIRST_HOST)
    inside = ["ip", "netns", "exec"]
    cut = json.dumps(["ip", "-n", second, "link", "set", "cable2", "down"])
    running = []
    try:
        command = [*inside, first, sys.executable, str(script), first, cut]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path))
        assert running[0].stdout.readline().strip() == "ready"
        dask = str(pathlib.Path(sys.executable).parent / "dask")
        worker = ["worker", "tcp://10.231.77.1:8786", "--host", "10.231.77.2", "--nthreads", "1", "--no-dashboard"]
        running.append(subprocess.Popen([*inside, second, dask, *worker], cwd=tmp_path, stderr=subprocess.DEVNULL))
        out, _ = running[0].communicate(timeout=300)
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(60)
    found = json.loads(out.splitlines()[-1])
    assert found["hosts"] == ["10.231.77.1", "10.231.77.2"]
    assert found["bits"][0] == found["bits"][1]
    assert found["histories"][0] == found["histories"][1]
