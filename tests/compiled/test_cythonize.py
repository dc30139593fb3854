"""The build runs Cython on the modules that are out of date, and on no other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ranksvm

SCRIPT = Path(ranksvm.__file__).parent / "_compiled" / "cythonize.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the sources of the compiled modules are not here")

# stands for Cython: writes what it is given, and to where
FAKE = """
import sys
from pathlib import Path
folder, *sources = sys.argv[sys.argv.index("-o") + 1:]
for source in sources:
    Path(folder, Path(source).stem + ".cpp").touch()
print(*(Path(source).name for source in sources))
"""


@pytest.fixture
def cythonize(tmp_path):
    program, declaration, folder = tmp_path / "fake.py", tmp_path / "shared.pxd", tmp_path / "out"
    program.write_text(FAKE)
    sources = [tmp_path / name for name in ("a.pyx", "b.pyx")]
    folder.mkdir()
    for path in (declaration, *sources):
        path.touch()
        os.utime(path, ns=(10**18, 10**18))

    def run():
        command = [SCRIPT, folder, declaration, "--", sys.executable, program, "--", *sources]
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
        return done.stdout.split()

    return run


def test_modules_that_are_up_to_date_are_left(cythonize):
    assert cythonize() == ["a.pyx", "b.pyx"]
    assert cythonize() == []


@pytest.mark.parametrize(("changed", "again"), [("b.pyx", ["b.pyx"]), ("shared.pxd", ["a.pyx", "b.pyx"])])
def test_what_a_change_concerns_is_made_again(cythonize, tmp_path, changed, again):
    cythonize()
    after = (tmp_path / "out" / "a.cpp").stat().st_mtime_ns + 10**9
    os.utime(tmp_path / changed, ns=(after, after))
    assert cythonize() == again


def test_an_error_of_cython_is_one_of_the_build(cythonize, tmp_path):
    (tmp_path / "fake.py").write_text("raise SystemExit(3)")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        cythonize()
    assert caught.value.returncode == 3
