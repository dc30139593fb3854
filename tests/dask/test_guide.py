"""The commands of docs/cluster.md: its Python runs as doctests, its shell commands here."""

import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("distributed")

from distributed import Client

from ranksvm import RankSVM
from ranksvm.dask import DaskRankSVM

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "cluster.md"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_the_commands_start_a_cluster(data, tmp_path):
    (block,) = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.S)
    commands = [shlex.split(line[2:].replace("8786", "PORT")) for line in block.splitlines()]
    assert [command[:2] for command in commands] == [["dask", "scheduler"], ["dask", "worker"]]
    port, folder = str(free_port()), pathlib.Path(sys.executable).parent
    running = []
    try:
        for command in commands:
            words = [word.replace("PORT", port) for word in command[1:]] + ["--no-dashboard"]
            environment = {**os.environ, "DASK_TEMPORARY_DIRECTORY": str(tmp_path)}
            started = subprocess.Popen(
                [str(folder / command[0]), *words], env=environment, stderr=subprocess.DEVNULL, cwd=tmp_path
            )
            running.append(started)
        with Client(f"tcp://127.0.0.1:{port}", timeout=120, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
            ranker = DaskRankSVM(C=0.01, tol=1e-8)
            ranker.client = client
            ranker.fit(data.X, data.y, qid=data.qid)
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(30)
    expected = RankSVM(C=0.01, tol=1e-8).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(ranker.objective_, expected.objective_, rtol=1e-9)
