"""What is published: the source distribution, and wheels built from it."""

import hashlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import zipfile

import pytest

import ranksvm

ROOT = pathlib.Path(__file__).parents[1]


def bills():
    spec = importlib.util.spec_from_file_location("sbom", ROOT / ".ci" / "sbom.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_wheel(path):
    """A wheel with one compiled module that names its version of Cython."""
    info = "ranksvm-1.2.3.dist-info"
    files = {
        "ranksvm/_compiled/sweep.so": b"\0_cython_3_3_1.cython_function_or_method\0_cython_3_3_1\0",
        f"{info}/METADATA": (
            b"Metadata-Version: 2.4\nName: ranksvm\nVersion: 1.2.3\nRequires-Dist: numpy>=2.0\n"
            b'Requires-Dist: scikit_learn>=1.6\nRequires-Dist: pyarrow>=16; extra == "parquet"\n\nText\n'
        ),
        f"{info}/RECORD": f"ranksvm/_compiled/sweep.so,sha256=x,1\n{info}/METADATA,,\n{info}/RECORD,,\n".encode(),
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(zipfile.ZipInfo(name, (2026, 1, 2, 3, 4, 6)), content)
    return files


def test_a_wheel_gets_a_bill_of_materials(tmp_path):
    path, place = tmp_path / "ranksvm-1.2.3-py3-none-any.whl", "ranksvm-1.2.3.dist-info/sboms/ranksvm.cdx.json"
    files, sbom = make_wheel(path), bills()
    sbom.put(path)
    first = path.read_bytes()
    with zipfile.ZipFile(path) as wheel:
        assert wheel.namelist()[-1].endswith("/RECORD")
        assert {each.date_time for each in wheel.infolist()} == {(2026, 1, 2, 3, 4, 6)}
        for name, content in files.items():
            assert name.endswith("/RECORD") or wheel.read(name) == content
        text, record = wheel.read(place), wheel.read("ranksvm-1.2.3.dist-info/RECORD").decode().splitlines()
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["metadata"]["component"]["purl"]) == ("CycloneDX", "pkg:pypi/ranksvm@1.2.3")
    named = [each["purl"] for each in bill["components"]]
    assert named == ["pkg:pypi/cython@3.3.1", "pkg:pypi/numpy", "pkg:pypi/scikit-learn"]
    assert bill["dependencies"] == [{"ref": "pkg:pypi/ranksvm@1.2.3", "dependsOn": named}]
    digest = hashlib.sha256(text).digest()
    assert record[-2] == f"{place},sha256={sbom.base64.urlsafe_b64encode(digest).decode().rstrip('=')},{len(text)}"
    assert len(record) == len(files) + 1
    sbom.put(path)
    assert path.read_bytes() == first


def test_modules_of_two_versions_of_cython_are_refused(tmp_path):
    path = tmp_path / "ranksvm-1.2.3-py3-none-any.whl"
    make_wheel(path)
    with zipfile.ZipFile(path, "a") as wheel:
        wheel.writestr("ranksvm/_compiled/other.so", b"\0_cython_3_2_0\0")
    with pytest.raises(SystemExit, match="2 versions of Cython"):
        bills().put(path)


@pytest.mark.slow
def test_the_source_distribution_gives_the_same_wheel_twice_and_it_works(tmp_path):
    pytest.importorskip("mesonpy")
    build = f"import mesonpy; print(mesonpy.build_sdist({str(tmp_path)!r}))"
    made = subprocess.run([sys.executable, "-c", build], cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    source = tmp_path / made.stdout.split()[-1]
    wheels = []
    for folder in ("one", "two"):
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
        environment = os.environ | {"SOURCE_DATE_EPOCH": "1790000000"}
        where = ["--wheel-dir", str(tmp_path / folder), str(source)]
        subprocess.run(command + where, cwd=tmp_path, env=environment, check=True)
        wheels += (tmp_path / folder).glob("*.whl")
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    bills().put(wheels[0])
    installed = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", installed]
    subprocess.run([*command, wheels[0]], check=True)
    code = (
        "import ranksvm; d = ranksvm.make_ranking(20, 10, 5, random_state=0);"
        "print(ranksvm.__file__, ranksvm.__version__, ranksvm.RankSVM().fit(d.X, d.y, qid=d.qid).converged_)"
    )
    # -S: without the editable install, which a file in site-packages loads
    paths = [str(installed), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    file, version, converged = done.stdout.split()
    assert pathlib.Path(file).is_relative_to(installed)
    assert (version, converged) == (ranksvm.__version__, "True")
