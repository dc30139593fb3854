"""Fuzz the reader of LETOR text with changed bytes; its errors must name file, line and reason."""

import gzip
import io

import numpy as np

from fuzz.mutations import BYTES, changed_bytes, pick
from ranksvm.datasets import RankingData, iter_letor, read_letor, write_letor
from ranksvm.exceptions import DataError, ParseError

LINES = [
    b"2 qid:1 1:0.5 2:1e-3 5:3 # docid = a\n",
    b"0 qid:1 1:0.25 #docid = b\r\n",
    b"1.5 qid:q:7 3:1 1:2\n",
    b"-1 qid:07 0:1\n",
    b"\n",
    b"# a comment\n",
    b"1 2:3\n",
    b"+1 qid:1  1:.5\t2:-7.25e+2 #x\n",
    b"0 qid:9223372036854775808 2147483647:1\n",
    b"3 qid:-1 1:0.1000000000000000055511151231257827 7:1e308\n",
]


class Target:
    """Changed text."""

    def __init__(self, folder):
        self.path = folder / "data.txt"

    def run(self, random):
        """One text."""
        chosen = [
            pick(random, LINES[:2] if random.random() < 0.7 else LINES) for _ in range(int(random.integers(1, 12)))
        ]
        text = changed_bytes(random, b"".join(chosen), most=3)
        if random.random() < 0.2:
            text = bytes(pick(random, BYTES) for _ in range(int(random.integers(0, 60))))
        options = {
            "n_features": pick(random, [None, None, 3, 10]),
            "sparse": pick(random, [None, True, False]),
            "zero_based": pick(random, ["auto", True, False]),
            "docids": pick(random, [True, False]),
            "dtype": pick(random, [np.float32, np.float64]),
        }
        if b"2147483647" in text or b"999999" in text:
            options["sparse"] = True
        if random.random() < 0.3:
            self._stream(text, options)
        else:
            self._whole(text, options, random)

    def _whole(self, text, options, random):
        self.path.write_bytes(gzip.compress(text) if random.random() < 0.1 else text)
        try:
            data = read_letor(self.path, n_jobs=int(random.integers(1, 3)), **options)
        except DataError as error:
            _check(error, self.path, text)
            return
        self._same_when_written(data)

    def _stream(self, text, options):
        try:
            for batch in iter_letor(io.BytesIO(text), batch_queries=2, **options):
                assert len(batch)
        except DataError:
            pass

    def _same_when_written(self, data):
        assert isinstance(data, RankingData)
        if data.n_features > 1000:
            return
        try:
            write_letor(self.path, data)
        except DataError as error:
            if "cannot be written" not in str(error):  # ids that cannot be written in a line of LETOR text
                raise
            return
        again = read_letor(self.path, dtype=np.float64, docids=False, sparse=False, n_features=data.n_features + 1)
        np.testing.assert_array_equal(again.y, data.y)
        if data.qid is not None:
            assert again.qid.astype(str).tolist() == data.qid.astype(str).tolist()


def _check(error, path, text):
    """Check that an error names the place and the reason."""
    if isinstance(error, ParseError):
        assert error.path == str(path), error
        assert 1 <= error.line <= text.count(b"\n") + 1, error
        assert error.reason, error
    else:
        assert str(path) in str(error), error
