"""Files written whole or not at all: errors name the folder or file that the caller knows."""

import os
import subprocess
import sys

import pytest

from ranksvm._util import atomic_files
from ranksvm._util.atomic_files import atomic_write, remove_abandoned, temporary_beside, temporary_file
from ranksvm._util.special_files import descriptor_of, is_special
from ranksvm.datasets import make_ranking, read_data, write_data, write_letor
from ranksvm.model_files.persistence import load, save


@pytest.fixture
def data():
    return make_ranking(2, 3, 2, random_state=0)


def test_a_folder_that_does_not_exist_is_named(data, tmp_path):
    from ranksvm import RankSVM

    folder = os.path.realpath(tmp_path / "absent")
    for write in (
        lambda path: save(RankSVM(), path),
        lambda path: RankSVM().fit(data.X, data.y, qid=data.qid).save(path),
        lambda path: write_letor(path, data),
        data.save,
    ):
        with pytest.raises(FileNotFoundError, match="the folder does not exist") as caught:
            write(tmp_path / "absent" / "file")
        assert caught.value.filename == folder
    assert not list(tmp_path.iterdir())


def test_a_file_in_place_of_a_folder_is_named(data, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError) as caught:  # noqa: PT011 - which error is the system's choice
        data.save(tmp_path / "file" / "data.rsd")
    assert ".tmp" not in str(caught.value)


def test_a_folder_is_not_replaced(data, tmp_path):
    with pytest.raises(IsADirectoryError) as caught:
        data.save(tmp_path)
    assert caught.value.filename == os.path.realpath(tmp_path)


def test_a_name_that_is_too_long_is_told_as_it_was_given(tmp_path):
    path = tmp_path / ("x" * 300)
    with pytest.raises(OSError) as caught, atomic_write(path):  # noqa: PT011
        pass
    assert caught.value.filename == os.path.realpath(path)


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "x" * 251 + ".rsd"])
def test_the_longest_names_can_be_written(name, tmp_path):
    for _ in range(2):
        with atomic_write(tmp_path / name) as file, temporary_beside(tmp_path / name):
            file.write(b"whole")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"whole")]


def test_a_file_beside_a_temporary_one_has_the_same_target(tmp_path):
    """`remove_abandoned` finds both by the name of the target."""
    name = "x" * 60
    with temporary_beside(tmp_path / name) as outer, temporary_beside(outer) as inner:
        assert outer != inner
        for path in (outer, inner):
            assert os.path.basename(path).startswith(f".{name[-50:]}.")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, monkeypatch):
    target = tmp_path / "model"
    monkeypatch.setattr(atomic_files, "_ABANDONED_AFTER", -1.0)
    abandoned = [tmp_path / f".model.{digit * 16}.tmp" for digit in "0a"]
    others = [tmp_path / name for name in (".model2.0000000000000000.tmp", ".model.tmp", ".model.zzzzzzzzzzzzzzzz.tmp")]
    for path in abandoned + others:
        path.write_bytes(b"half")
    with atomic_write(target) as file:
        file.write(b"whole")
        with atomic_write(target) as another:  # of a file that is being written nothing is removed
            another.write(b"other")
        assert not any(path.exists() for path in abandoned)
    assert target.read_bytes() == b"whole"
    assert all(path.exists() for path in others)
    assert sorted(os.listdir(tmp_path)) == sorted(["model", *(path.name for path in others)])


KILLED = """
import os, signal, sys
from ranksvm._util.atomic_files import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(bytes(100000))
    if sys.argv[2:]:
        print("writing", flush=True)
        input()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_the_next_run_removes_what_a_killed_one_left_under_another_name(tmp_path):
    """The cache of a file that has changed meanwhile has another name; what a living process writes stays."""
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a.rsd")]).returncode < 0
    assert len(os.listdir(tmp_path)) == 1
    command = [sys.executable, "-c", KILLED, str(tmp_path / "b.rsd"), "wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as living:
        assert living.stdout.readline() == b"writing\n"
        (own,) = [name for name in os.listdir(tmp_path) if name.startswith(".b.rsd.")]
        with atomic_write(tmp_path / "c.rsd") as file:
            file.write(b"whole")
        assert sorted(os.listdir(tmp_path)) == [own, "c.rsd"]
        living.stdin.close()
    remove_abandoned(tmp_path)
    assert os.listdir(tmp_path) == ["c.rsd"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_a_temporary_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    before, removed = atomic_files.fcntl.flock, []

    def removed_first(*arguments):
        if not removed:
            removed.extend(os.listdir(tmp_path))
            os.unlink(tmp_path / removed[0])
        before(*arguments)

    monkeypatch.setattr(atomic_files.fcntl, "flock", removed_first)
    with atomic_write(tmp_path / "file") as file:
        file.write(b"whole")
    assert os.listdir(tmp_path) == ["file"]
    assert len(removed) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_another_writer_removes_no_file_that_is_about_to_be_renamed(tmp_path, monkeypatch):
    replace = os.replace

    def removed_first(*paths):
        remove_abandoned(tmp_path)
        replace(*paths)

    monkeypatch.setattr(atomic_files.os, "replace", removed_first)
    with atomic_write(tmp_path / "file") as file:
        file.write(b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_a_file_beside_another_is_temporary(tmp_path, monkeypatch):
    """A copy of a pipe stayed behind after a kill, as did a cache from which other formats are written."""
    monkeypatch.setattr(atomic_files, "_ABANDONED_AFTER", -1.0)
    target = tmp_path / "data.txt"
    abandoned = tmp_path / ".data.txt.0123456789abcdef.tmp"
    abandoned.write_bytes(b"half a cache")
    with temporary_beside(target) as path:
        assert os.listdir(tmp_path) == [os.path.basename(path)]
        with atomic_write(target) as file:
            file.write(b"whole")
        assert os.path.exists(path)
    assert os.listdir(tmp_path) == ["data.txt"]
    with pytest.raises(ValueError, match="stop"), temporary_file() as path:
        raise ValueError("stop")
    assert not os.path.exists(path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_another_writer_removes_no_temporary_file_that_is_written_atomically(data, tmp_path):
    """As `ranksvm convert` writes a temporary cache of data that may not fit into memory."""
    with temporary_beside(tmp_path / "data.txt") as path:
        data.save(path)
        remove_abandoned(tmp_path)
        assert read_data(path).n_rows == data.n_rows
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of file sizes")
def test_errors_while_writing_name_the_file(tmp_path):
    code = f"""
import resource, signal
from ranksvm._util.atomic_files import atomic_write, temporary_beside, temporary_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with atomic_write({str(tmp_path / "model")!r}) as file:
        file.write(bytes(100000))
except OSError as error:
    print(error.filename, error.strerror)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == f"{tmp_path / 'model'} File too large"
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
def test_errors_while_writing_to_a_device_name_it():
    with pytest.raises(OSError, match="No space left on device") as caught, atomic_write("/dev/full") as file:
        file.write(bytes(100_000))
    assert caught.value.filename == "/dev/full"


@pytest.mark.skipif(os.name == "nt", reason="no such names")
def test_links_to_descriptors_are_descriptors(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/dev/stdout")
    assert descriptor_of(link) == descriptor_of("/dev/fd/1") == descriptor_of("/proc/self/fd/1") == 1
    assert descriptor_of(tmp_path / "absent") is None
    assert not is_special(tmp_path / "absent")
    link.unlink()
    link.symlink_to(link)
    assert descriptor_of(link) is None


@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "rsd", "parquet", "rsvm"])
@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="no such names")
def test_every_writer_writes_to_a_descriptor_opened_to_append(data, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    whole, appended = tmp_path / f"whole.{suffix}", tmp_path / "appended"
    write = save_model if suffix == "rsvm" else write_data
    write(data, whole)
    link = tmp_path / f"link.{suffix}"
    with open(appended, "ab") as file:
        link.symlink_to(f"/dev/fd/{file.fileno()}")
        write(data, link)
    assert link.is_symlink()
    if suffix == "rsvm":
        assert load(appended).coef_.shape == (2,)
    else:
        assert read_data(appended).y.tolist() == read_data(whole).y.tolist()


def save_model(data, path):
    from ranksvm import RankSVM

    save(RankSVM().fit(data.X, data.y, qid=data.qid), path)
