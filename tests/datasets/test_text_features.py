"""Features of files that hold text: read as numbers, written and read again as text."""

import io

import numpy as np
import pytest
from scipy import sparse

from ranksvm import RankingData
from ranksvm.datasets import convert_to_cache, iter_data, parquet, read_data, write_data
from ranksvm.datasets.csv import read_csv_blocks
from ranksvm.datasets.table import Columns
from ranksvm.exceptions import DataError, OptionError

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
BRANDS = ["bolt", "corp", "acme", "bolt", "zeta", "acme"]


def written(path, **columns):
    columns = {"size": [0.5, 1.0, 2.0, 3.0, 4.0, 5.5], "brand": BRANDS, **columns}
    table = pandas.DataFrame({"label": [1, 0, 2, 1, 0, 1], "qid": [1, 1, 1, 2, 2, 2], **columns})
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


def texts_of(data, name="brand"):
    """The text of each row, looked up one by one."""
    column = data.feature_names.index(name)
    return [None if np.isnan(value) else data.categories[name][int(value)] for value in data.X[:, column]]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("named", [["brand"], [1], ["brand", "size", "absent", 9]])
def test_a_text_is_its_place_in_alphabetical_order(tmp_path, suffix, named):
    data = read_data(written(tmp_path / f"data{suffix}"), categorical=named)
    assert data.categories == {"brand": ["acme", "bolt", "corp", "zeta"]}
    np.testing.assert_array_equal(data.X[:, 0], [0.5, 1.0, 2.0, 3.0, 4.0, 5.5])
    np.testing.assert_array_equal(data.X[:, 1], [1, 2, 0, 1, 3, 0])
    assert texts_of(data) == BRANDS


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_known_texts_come_first(tmp_path, suffix):
    path = written(tmp_path / f"data{suffix}")
    data = read_data(path, categorical={"brand": ["zeta", "corp"], "absent": ["x"]})
    assert data.categories == {"brand": ["zeta", "corp", "acme", "bolt"]}
    assert texts_of(data) == BRANDS
    # text that looks like numbers is text if it is known to be
    numbers = written(tmp_path / f"numbers{suffix}", brand=["1", "2", "1", "2", "3", "1"])
    assert texts_of(read_data(numbers, categorical={"brand": ["2", "x"]})) == ["1", "2", "1", "2", "3", "1"]


def test_numbers_stay_numbers(tmp_path):
    path = written(tmp_path / "data.csv", brand=[10, 2, 10, 2, 2, 10])
    data = read_data(path, categorical=["brand"])
    assert data.categories == {}
    np.testing.assert_array_equal(data.X, read_data(path).X)
    path = written(tmp_path / "data.parquet", brand=[10, 2, 10, 2, 2, 10])
    assert read_data(path, categorical=["brand"]).categories == {}


@pytest.mark.parametrize("kind", ["str", "category"])
def test_text_in_parquet_is_text_even_if_it_looks_like_numbers(tmp_path, kind):
    codes = pandas.Series(["01", "1", "01", "1.0", "1", "1"], dtype=kind)
    path = written(tmp_path / "data.parquet", brand=codes)
    convert_to_cache(path, tmp_path / "data.rsd", categorical=["brand"])
    for data in (read_data(path, categorical=["brand"]), RankingData.load(tmp_path / "data.rsd")):
        assert data.categories == {"brand": ["01", "1", "1.0"]}
        assert texts_of(data) == codes.to_list()
    assert read_data(path, categorical={"brand": ["a"]}).categories == {"brand": ["a", "01", "1", "1.0"]}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_missing_texts(tmp_path, suffix):
    path = written(tmp_path / f"data{suffix}", brand=["b", None, "a", "b", None, "b"])
    data = read_data(path, categorical=["brand"], missing=True)
    assert texts_of(data) == ["b", None, "a", "b", None, "b"]
    counted = "missing values in 2 of the first 6 rows"
    with pytest.raises(DataError, match=rf"column 'brand' of .* has {counted}, .*--missing-values"):
        read_data(path, categorical=["brand"])
    np.testing.assert_array_equal(data.to_frame(library="pandas")["brand"].isna(), [0, 1, 0, 0, 1, 0])


@pytest.mark.parametrize("target", ["data.rsd", "data.parquet", "data.csv", "data.tsv.gz"])
@pytest.mark.parametrize("missing", [False, True])
def test_a_file_is_read_as_it_was_written(tmp_path, target, missing):
    path = written(tmp_path / "source.csv", brand=["", *BRANDS[1:]] if missing else BRANDS)
    data = read_data(path, categorical=["brand"], missing=missing)
    write_data(data, tmp_path / target)
    # caches and our Parquet know which features hold text
    options = {} if target in ("data.rsd", "data.parquet") else {"categorical": ["brand"]}
    again = read_data(tmp_path / target, missing=missing, **options)
    np.testing.assert_array_equal(again.X, data.X)
    assert (again.categories, again.feature_names) == (data.categories, data.feature_names)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_blocks_have_the_categories_of_the_whole_file(tmp_path, suffix, monkeypatch):
    n = 20_000 if suffix == ".csv" else 6
    path = written(tmp_path / f"data{suffix}") if n == 6 else tmp_path / "data.csv"
    if n > 6:
        rng = np.random.default_rng(0)
        table = {"label": rng.integers(0, 3, n), "qid": np.arange(n) // 20, "size": rng.normal(size=n)}
        words = np.array([f"w{number}" for number in range(50)])[np.sort(rng.integers(0, 50, n))]
        pandas.DataFrame({**table, "brand": words}).to_csv(path, index=False)
        monkeypatch.setattr("ranksvm.datasets.csv._BLOCK", 1 << 14)
        with open(path, "rb") as file:
            parts = list(read_csv_blocks(file, str(path), Columns(categorical=["brand"]), None))
    else:
        monkeypatch.setattr(parquet, "_STREAM_ROWS", 2)
        parts = list(parquet.read_blocks(path, Columns(categorical=["brand"]), None))
    assert len(parts) > 2
    whole = read_data(path, categorical=["brand"])
    assert all(part["categories"] == whole.categories for part in parts)
    np.testing.assert_array_equal(np.vstack([part["X"] for part in parts]), whole.X)
    target = tmp_path / "data.rsd"
    convert_to_cache(path, target, categorical=["brand"])
    cached = RankingData.load(target)
    assert cached.categories == whole.categories
    np.testing.assert_array_equal(cached.X, whole.X)


def test_many_long_texts_fit_into_the_header_of_a_cache(tmp_path):
    words = [f"{number:04d}" * 50 + "é" for number in range(2000)]
    table = {"label": [0, 1] * 1000, "qid": np.repeat(np.arange(100), 20), "brand": words}
    pandas.DataFrame(table).to_csv(tmp_path / "data.csv", index=False)
    convert_to_cache(tmp_path / "data.csv", tmp_path / "data.rsd", categorical=["brand"])
    assert RankingData.load(tmp_path / "data.rsd").categories == {"brand": words}


def test_rows_keep_their_categories(tmp_path):
    data = read_data(written(tmp_path / "data.csv"), categorical=["brand"])
    assert texts_of(data.select([4, 0])) == ["zeta", "bolt"]
    assert "zeta" in data._repr_html_()


def test_what_cannot_hold_text_refuses_it(tmp_path):
    data = read_data(written(tmp_path / "data.csv"), categorical=["brand"])
    with pytest.raises(DataError, match="features 'brand' hold text, and a feature of LETOR text is a number"):
        write_data(data, tmp_path / "data.txt")
    write_data(data, tmp_path / "data.rsd")
    write_data(data, tmp_path / "data.parquet")
    for name in ("data.rsd", "data.parquet"):
        with pytest.raises(DataError, match=r"features 'brand' of .* hold text: encode them"):
            list(iter_data(tmp_path / name))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_text_that_is_not_listed_is_refused(tmp_path, suffix):
    with pytest.raises(DataError, match=r"column 'brand' .* list it \(categorical, --categorical\)"):
        read_data(written(tmp_path / f"data{suffix}"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_reader_without_the_list_names_the_one_that_takes_it(tmp_path, suffix):
    path = written(tmp_path / f"data{suffix}")
    readers = [lambda: list(iter_data(path))]
    if suffix == ".parquet":
        readers.append(lambda: RankingData.from_parquet(path))
    for read in readers:
        with pytest.raises(DataError, match=r"read the whole file with read_data and list it there \(categorical\)"):
            read()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("known", [{}, {"color": ["red"]}])
def test_text_in_the_place_of_numbers_is_not_to_be_listed(tmp_path, suffix, known):
    with pytest.raises(DataError, match=r"column 'brand' .* The training data have no text in such a column") as error:
        read_data(written(tmp_path / f"data{suffix}"), categorical=known)
    assert "list it" not in str(error.value)


@pytest.mark.parametrize("categorical", [(), ["tags"], {"tags": ["a"]}])
@pytest.mark.parametrize("tags", [[["a"], ["b", "a"], [], ["a"], ["c"], []], [{"size": 1}] * 6])
def test_a_feature_with_several_values_in_a_row(tmp_path, categorical, tags):
    path = written(tmp_path / "data.parquet", tags=tags)
    for read in (lambda: read_data(path, categorical=categorical), lambda: list(iter_data(path))):
        with pytest.raises(DataError, match=r"'tags' of .* has type (list|struct).*, but a feature is one number, or"):
            read()
    assert read_data(path, categorical=["brand"], ignore=["tags"]).n_features == 2


@pytest.mark.parametrize("categorical", ["brand", [1.5], [-1], [None], 5, {"brand": "zeta"}])
def test_invalid_lists(tmp_path, categorical):
    with pytest.raises(OptionError, match="categorical must be a list of names or numbers of features"):
        read_data(written(tmp_path / "data.csv"), categorical=categorical)


def test_invalid_categories():
    X, y = np.zeros((2, 1)), np.zeros(2)
    with pytest.raises(DataError, match="categories of 'b', but no feature has this name"):
        RankingData(X, y, feature_names=["a"], categories={"b": ["x"]})
    with pytest.raises(DataError, match="categories of 'a' must be distinct"):
        RankingData(X, y, feature_names=["a"], categories={"a": ["x", "x"]})
    with pytest.raises(DataError, match="only features of a dense X may have categories"):
        RankingData(sparse.csr_matrix(X), y, feature_names=["a"], categories={"a": ["x"]})
    for value in (1.0, -1.0, 0.5):
        data = RankingData(X + value, y, feature_names=["a"], categories={"a": ["x"]})
        with pytest.raises(DataError, match=f"a feature with 1 categories has the value {value:g} in row 0"):
            data.to_frame(library="pandas")


@pytest.mark.parametrize("altered", [b'{"brand": 5}', b'{"brand": [1]}', b"[]"])
def test_altered_metadata_are_refused(tmp_path, altered):
    import pyarrow.parquet as pq

    data = read_data(written(tmp_path / "data.csv"), categorical=["brand"])
    data.to_parquet(tmp_path / "data.parquet")
    table = pq.read_table(tmp_path / "data.parquet")
    noted = table.schema.metadata[b"ranksvm"]
    start = noted.index(b'"categories": ') + len(b'"categories": ')
    assert noted.endswith(b"]}}")
    replaced = noted[:start] + altered + b"}"
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({b"ranksvm": replaced}), out)
    (tmp_path / "altered.parquet").write_bytes(out.getvalue())
    with pytest.raises(DataError, match="metadata do not describe categories"):
        read_data(tmp_path / "altered.parquet")


def test_a_known_text_is_never_missing(tmp_path):
    path = written(tmp_path / "data.csv", brand=["NA", "b", "", "NA", "b", "null"])
    data = read_data(path, categorical={"brand": ["NA", "b"]}, missing=True)
    assert texts_of(data) == ["NA", "b", None, "NA", "b", None]
    with pytest.raises(DataError, match="the text 'NA' of feature 'brand' stands for a missing value in CSV"):
        write_data(data, tmp_path / "other.csv")
    write_data(data, tmp_path / "other.parquet")
    assert texts_of(read_data(tmp_path / "other.parquet", missing=True)) == ["NA", "b", None, "NA", "b", None]


def test_texts_that_only_python_takes_for_numbers(tmp_path):
    for texts in (["1_0", "10", "1_0", "1_1", "10", "10"], ["١٢", "12", "12", "7", "7", "7"]):
        assert texts_of(read_data(written(tmp_path / "data.csv", brand=texts), categorical=["brand"])) == texts
    path = written(tmp_path / "data.csv", brand=["1", "", "2.5", "-3e2", "1", "2"])
    data = read_data(path, categorical=["brand"], missing=True)
    assert data.categories == {}
    np.testing.assert_array_equal(data.X[:, 1], [1.0, np.nan, 2.5, -300.0, 1.0, 2.0])


def test_no_list_is_an_empty_one(tmp_path):
    path = written(tmp_path / "data.csv", brand=[1, 2, 1, 2, 1, 2])
    np.testing.assert_array_equal(read_data(path, categorical=None).X, read_data(path).X)
    assert RankingData(np.zeros((2, 1)), np.zeros(2), categories=None).categories == {}
    with pytest.raises(DataError, match="categories must be lists of texts by name"):
        RankingData(np.zeros((2, 1)), np.zeros(2), feature_names=["a"], categories={"a": "xy"})


def test_damaged_headers_are_refused(tmp_path):
    data = read_data(written(tmp_path / "data.csv"), categorical=["brand"])
    object.__setattr__(data, "categories", {"brand": [1, 2]})
    data.save(tmp_path / "data.rsd")
    with pytest.raises(DataError, match="its header does not describe categories"):
        RankingData.load(tmp_path / "data.rsd")
