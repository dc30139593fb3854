"""Fuzz the readers of TREC files: errors must name file, line and reason, and what was read must survive rewriting."""

import gzip

from fuzz.mutations import changed_bytes, pick
from ranksvm.datasets import read_qrels, read_run, write_qrels, write_run
from ranksvm.exceptions import DataError, ParseError

QRELS = [
    b"301 0 FT-1 1\n",
    b"301\t0\tFT-2\t0\r\n",
    b"\n",
    b"7 Q0 d\xc3\xa9 -1\n",
    b" 7  0 x 2.5 \n",
    b"q 0 1 3e2\n",
]
RUNS = [
    b"301 Q0 FT-1 1 0.5 a\n",
    b"301\tQ0\tFT-2\t2\t1e-3\ta\r\n",
    b"\n",
    b"7 0 d\xc3\xa9 x -inf b\n",
    b"q 0 1 1 7 _\n",
]


class Target:
    """Changed files."""

    def __init__(self, folder):
        self.path = folder / "file"

    def run(self, random):
        """One file."""
        lines, read, write = pick(random, [(QRELS, read_qrels, write_qrels), (RUNS, read_run, write_run)])
        text = b"".join(pick(random, lines) for _ in range(int(random.integers(1, 6))))
        text = changed_bytes(random, text, most=3)
        self.path.write_bytes(gzip.compress(text) if random.random() < 0.1 else text)
        try:
            found = read(self.path)
        except DataError as error:
            _check(error, self.path, text)
            return
        write(self.path, found)
        assert read(self.path).to_dict() == found.to_dict()


def _check(error, path, text):
    """Check that an error names the place and the reason."""
    assert str(path) in str(error), error
    if isinstance(error, ParseError):
        assert 1 <= error.line <= text.count(b"\n") + 1, error
        assert error.column >= 1, error
        assert error.reason, error
