"""Fuzz cache files: changed bytes, which must be detected, or changed fields with matching checksums."""

import contextlib
import json
import struct
import zlib

import numpy as np

import ranksvm
from fuzz.mutations import changed_array, changed_bytes, changed_json, pick
from ranksvm.datasets import RankingData, make_ranking
from ranksvm.datasets.cache.reader import CacheFile
from ranksvm.datasets.file_data import FileData
from ranksvm.estimators.rank_svm import RankSVMCore as RankSVM
from ranksvm.exceptions import RankSVMError


class Target:
    """Load and use changed cache files."""

    def __init__(self, folder):
        self.path = folder / "data.rsd"
        self.files = []
        for density in (1.0, 0.2):
            data = make_ranking(8, (1, 6), 5, density=density, random_state=3)
            text = np.array([f"q{number}" for number in range(len(data))], dtype=object)
            ids = {"numbers": data.qid, "words": data.qid.astype(str), "long words": text, "none": None}
            for qid in ids.values():
                made = RankingData(data.X, data.y, qid, text if qid is not None else None)
                made.save(self.path)
                self.files.append(self.path.read_bytes())

    def run(self, random):
        """Load and use one changed file."""
        content = pick(random, self.files)
        plain = random.random() < 0.4
        changed = changed_bytes(random, content) if plain else _changed_fields(random, content)
        self.path.write_bytes(changed)
        if not plain and random.random() < 0.5:
            with contextlib.suppress(RankSVMError):
                _read_in_passes(self.path)
        try:
            data = RankingData.load(self.path, mmap=random.random() < 0.5)
        except RankSVMError as error:
            _check(error, self.path)
            return
        assert not plain or changed == content, "altered bytes were accepted"
        _use(data)


def _changed_fields(random, content):
    magic, version, _, length = struct.unpack("<16sIIQ", content[:32])
    header = json.loads(content[32 : 32 + length])
    start = -(-(32 + length) // 64) * 64
    arrays = []
    for entry in header["arrays"]:
        at = start + entry["offset"]
        count = int(np.prod(entry["shape"]))
        arrays.append(np.frombuffer(content, np.dtype(entry["dtype"]), count, at).reshape(entry["shape"]))
    for _ in range(int(random.integers(1, 3))):
        if random.random() < 0.6:
            place = int(random.integers(len(arrays)))
            arrays[place] = changed_array(random, arrays[place])
    # make the header describe the changed arrays; the header itself may be changed afterwards
    body, entries = b"", []
    for entry, array in zip(header["arrays"], arrays, strict=True):
        stored = array.tobytes()
        stored += bytes(-len(stored) % 64)
        described = {"dtype": array.dtype.str, "shape": array.shape, "offset": len(body)}
        entries.append({**entry, **described, "crc32": [zlib.crc32(stored)] if stored else []})
        body += stored
    header |= {"arrays": entries, "size": len(body)}
    if random.random() < 0.6:
        changed_json(random, header)
    elif random.random() < 0.1:
        nested = []
        for _ in range(int(pick(random, [30, 300, 900]))):
            nested = [nested]
        pick(random, [header, *header["arrays"]])[pick(random, ["name", "shape", "feature_names", "dtype"])] = nested
    encoded = json.dumps(header).encode()
    padded = encoded + bytes(-(32 + len(encoded)) % 64)
    checksum = zlib.crc32(padded, zlib.crc32(struct.pack("<IQ", version, len(encoded))))
    return struct.pack("<16sIIQ", magic, version, checksum, len(encoded)) + padded + body


def _check(error, path):
    """Check that an error names the file."""
    assert str(path) in str(error), error


def _read_in_passes(path):
    """Fit a model that reads the rows from the file in passes."""
    file = CacheFile(path)
    if file.n_features <= 10_000:
        RankSVM(n_jobs=1, max_iter=3).fit(FileData(str(path), (file.n_rows, file.n_features), file.has_qid))


def _use(data):
    """Use the data in several ways; only errors of ranksvm are accepted."""
    if data.n_features > 1_000_000:  # the weights might not fit into memory
        return
    for call in (
        lambda: ranksvm.RankSVM().fit(data.X, data.y, qid=data.qid),
        lambda: ranksvm.SOLARRanker().fit(data.X, data.y, qid=data.qid),
        lambda: data.select(slice(0, 3)),
        lambda: data.queries,
        lambda: repr(data),
    ):
        with contextlib.suppress(RankSVMError):
            call()
