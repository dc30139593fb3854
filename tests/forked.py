"""Run each script in a new process, forked from a process that has imported ranksvm; importing takes seconds."""

import multiprocessing
import pathlib
import runpy
import subprocess
import sys
import tempfile

__all__ = ["run_script"]

_MODULES = ["ranksvm.estimators", "ranksvm.datasets", "sklearn.base", "scipy.stats", "pandas"]


def run_script(path, *arguments):
    """Run a script as ``python path *arguments``.

    Parameters
    ----------
    path : path-like
        The script.
    *arguments : str
        Its arguments.

    Returns
    -------
    subprocess.CompletedProcess
        Exit status, stdout and stderr, as text.
    """
    command = [str(path), *map(str, arguments)]
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_MODULES)
    with tempfile.TemporaryDirectory() as folder:
        outputs = [str(pathlib.Path(folder, name)) for name in ("stdout", "stderr")]
        # the script is given by its path, because another process cannot import test modules by name
        process = context.Process(
            target=runpy.run_path,
            args=(str(pathlib.Path(__file__).with_name("forked_script.py")),),
            kwargs={"init_globals": {"command": command, "outputs": outputs}},
        )
        process.start()
        process.join()
        stdout, stderr = (pathlib.Path(output).read_text(encoding="utf-8") for output in outputs)
    return subprocess.CompletedProcess(command, process.exitcode, stdout, stderr)
