"""Fuzz the reader of Parquet files with changed bytes, columns or metadata; its errors must name the file."""

import json

import numpy as np
import scipy.sparse as sp

from fuzz.mutations import changed_bytes, changed_json, pick, some_value
from ranksvm.datasets import RankingData, convert_to_cache, iter_data, make_ranking, read_data
from ranksvm.exceptions import RankSVMError


class Target:
    """Changed Parquet files."""

    def __init__(self, folder):
        import pyarrow.parquet

        self.pa = pyarrow
        self.path, self.cache = folder / "data.parquet", folder / "data.rsd"
        self.files, self.tables, self.metadata = [], [], []
        for density in (1.0, 0.2):
            data = make_ranking(8, (1, 6), 5, density=density, random_state=3)
            for qid in (data.qid, np.array([f"q{number}" for number in data.qid.tolist()])):
                for docid in (None, np.array([f"d{number}" for number in range(len(data))])):
                    RankingData(sp.csr_matrix(data.X) if density < 1.0 else data.X, data.y, qid, docid).to_parquet(
                        self.path, compression=pick(np.random.default_rng(len(self.files)), ["none", "zstd", "snappy"])
                    )
                    self.files.append(self.path.read_bytes())
                    self.tables.append(pyarrow.parquet.read_table(self.path))
                    self.metadata.append(self.tables[-1].schema.metadata)

    def run(self, random):
        """One changed file, read as a whole, as a stream or into a cache."""
        number = int(random.integers(len(self.files)))
        if random.random() < 0.5:
            self.path.write_bytes(b"PAR1" + _changed_end(random, self.files[number])[4:])
        else:
            self._write(random, number)
        read = pick(random, [read_data, self._streamed, self._cached])
        options = pick(random, [{}, {}, {"dtype": np.float32}, {"require_labels": False}])
        try:
            data = read(self.path, **options)
        except RankSVMError as error:
            _check(error, self.path)
            return
        assert data.X.shape == (len(data.y), data.n_features)
        assert data.queries.n_rows == len(data.y)
        assert repr(data)

    def _streamed(self, path, **options):
        found = list(iter_data(path, **options))
        return found[-1] if found else read_data(path, **options)

    def _cached(self, path, **options):
        convert_to_cache(path, self.cache, **options)
        return RankingData.load(self.cache)

    def _write(self, random, number):
        """Write a table with changed columns or metadata."""
        pa, table = self.pa, self.tables[number]
        for _ in range(int(random.integers(1, 3))):
            place = int(random.integers(table.num_columns))
            name, values = table.column_names[place], table.column(place).to_pylist()
            if random.random() < 0.5:
                column = _changed_column(random, pa, values)
                try:
                    table = table.set_column(place, name, column)
                except pa.ArrowException:
                    continue
            else:
                table = table.replace_schema_metadata(_changed_metadata(random, self.metadata[number]))
        try:
            pa.parquet.write_table(table, self.path, store_schema=random.random() < 0.7)
        except (pa.ArrowException, OSError):
            self.path.write_bytes(self.files[0])


def _check(error, path):
    """Check that an error names the file."""
    assert str(path) in str(error), error


def _changed_end(random, content):
    """Change bytes, mostly in the metadata at the end of the file."""
    if random.random() < 0.4:
        return changed_bytes(random, content)
    size = 8 + int.from_bytes(content[-8:-4], "little")
    footer = changed_bytes(random, content[-size:-8])
    return content[:-size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _changed_column(random, pa, values):
    kind = int(random.integers(8))
    if kind == 0:
        return pa.array([{"x": value} for value in range(len(values))])
    if kind == 1:
        return pa.array([[number] * (number % 4) for number in range(len(values))])
    if kind == 2:
        return pa.array([pick(random, ["", "x", "1", "\0"]) for _ in values])
    if kind == 3:
        return pa.nulls(len(values))
    if kind == 4:
        return pa.array(random.integers(-3, 1 << 40, len(values)))
    if kind == 5:
        return pa.array(10.0 ** random.uniform(-300, 300, len(values)))
    if kind == 6:
        nested = pa.array(range(len(values)))
        for _ in range(int(pick(random, [1, 30, 100]))):
            nested = pa.StructArray.from_arrays([nested], ["x"])
        return nested
    return pa.array([random.bytes(4) for _ in values])


def _changed_metadata(random, metadata):
    info = json.loads(metadata[b"ranksvm"])
    kind = int(random.integers(4))
    if kind == 0:
        text = "[" * int(pick(random, [900, 100_000]))
    elif kind == 1:
        text = changed_bytes(random, json.dumps(info).encode())
    elif kind == 2:
        text = json.dumps(changed_json(random, info))
    else:
        text = json.dumps(some_value(random))
    return {**metadata, b"ranksvm": text}
