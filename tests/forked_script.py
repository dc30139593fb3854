"""A process of `forked.run_script` runs this file: it redirects its output to files, and then runs the script."""

import os
import pathlib
import runpy
import sys

for number, output in enumerate(outputs, start=1):  # noqa: F821 (given by run_script)
    file = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, number)
    os.close(file)
sys.argv = command  # noqa: F821
sys.path.insert(0, str(pathlib.Path(command[0]).parent))  # noqa: F821
runpy.run_path(command[0], run_name="__main__")  # noqa: F821
