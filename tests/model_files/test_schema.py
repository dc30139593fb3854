"""Schemas of fitted attributes: every class that can be saved declares what its attributes are."""

import numpy as np
import pytest
import scipy.sparse as sp

import ranksvm
from ranksvm.model_files.registry import STORABLE
from ranksvm.model_files.schema import (
    Array,
    Flag,
    Matrix,
    Number,
    PlainDict,
    SchemaError,
    Text,
    Texts,
    Trace,
    checked_attributes,
    schema_of,
)


def refused(field, *values, **sizes):
    for value in values:
        with pytest.raises(SchemaError):
            field.checked(value, sizes)


def accepted(field, *values, **sizes):
    for value in values:
        field.checked(value, sizes)


def test_fields():
    accepted(Flag(), True, np.bool_(False))
    refused(Flag(), 1, "True", None, np.array(True))
    accepted(Flag(nullable=True), None)
    accepted(Number(), 1, 1.5, np.float32(2), np.int64(3))
    refused(Number(), "1", True, None, np.nan, np.inf, 10**400, np.array(1.0), [1])
    accepted(Number(finite=False), np.nan, np.inf)
    accepted(Number(integer=True, minimum=0, maximum=5), 0, 5, np.int32(2))
    refused(Number(integer=True, minimum=0, maximum=5), -1, 6, 1.0, "0")
    accepted(Text(), "", "ä")
    refused(Text(), b"a", 1, None)
    accepted(PlainDict(), {}, {"a": 1, "b": None, "c": "x", "d": True})
    refused(PlainDict(), [], {1: 2}, {"a": []}, {"a": {}}, None)
    accepted(Trace(), {}, {"a": [1, 2.0, None, np.nan]}, {"valid_0": {"ndcg": [0.5]}})
    refused(Trace(), {"a": 1}, {"a": ["x"]}, {1: []}, {"a": {"b": 3}}, {"a": [True]})


def test_arrays():
    vector, sizes = Array("n"), {"n": 3}
    accepted(vector, np.ones(3), **sizes)
    refused(vector, np.ones(4), np.ones((3, 1)), np.ones(3, dtype=np.float32), np.ones(3, dtype=">f8"), **sizes)
    refused(vector, [1.0, 2.0, 3.0], np.array([1.0, np.nan, 0.0]), np.array(1.0), np.ones(3, dtype=object), **sizes)
    accepted(Array("n", finite=False), np.full(3, np.nan), **sizes)
    refused(Array("n", minimum=0.0), np.array([1.0, -1.0, 0.0]), **sizes)
    accepted(Array("n - 1"), np.ones(2), **sizes)
    accepted(Array("2 * n", 4, dtype="int64"), np.ones((6, 4), dtype=np.int64), **sizes)
    refused(Array("2 * n", 4, dtype="int64"), np.ones((6, 4)), np.ones((6, 5), dtype=np.int64), **sizes)
    refused(Array("unknown"), np.ones(3), **sizes)
    checked = Array("n", 2).checked(np.asfortranarray(np.ones((3, 2))), sizes)
    assert checked.flags.c_contiguous
    assert checked.flags.writeable
    accepted(Texts("n"), np.array(["a", "b", "c"]), np.array(["a", "b", "c"], dtype=object), **sizes)
    refused(Texts("n"), np.array(["a", "b"]), np.array(["a", 1, "c"], dtype=object), np.ones(3), "abc", **sizes)
    accepted(Matrix("m", "n"), np.ones((2, 3)), sp.csr_array(np.ones((2, 3))), m=2, n=3)
    refused(Matrix("m", "n"), sp.csr_array(np.ones((3, 2))), sp.csr_array(np.full((2, 3), np.nan)), m=2, n=3)
    refused(Matrix("m", "n"), sp.csr_array(np.ones((2, 3), dtype=np.int32)), m=2, n=3)
    accepted(Matrix("m", "n"), sp.csr_array(np.ones((2, 3), dtype=np.float32)), m=2, n=3)
    refused(Array("n"), np.ones(3, dtype=np.float32), **sizes)
    accepted(Array("n", dtype="floating"), np.ones(3, dtype=np.float32), **sizes)


def test_arrays_that_share_a_size_agree():
    schema = {"a_": Array("n"), "b_": Array("n"), "n_": Number(integer=True, size="n", required=False)}
    checked_attributes("Thing", schema, {"a_": np.ones(3), "b_": np.ones(3)})
    for fitted, message in [
        ({"a_": np.ones(3), "b_": np.ones(2)}, "'b_' of Thing has shape"),
        ({"a_": np.ones(3), "b_": np.ones(3), "n_": 2}, "'a_' of Thing has shape"),
        ({"a_": np.ones(3)}, "attribute 'b_' of Thing is missing"),
        ({"a_": np.ones(3), "b_": np.ones(3), "c_": 1}, "Thing has no fitted attribute 'c_'"),
        ({"a_": np.ones(3), "b_": None}, "'b_' of Thing is None"),
    ]:
        with pytest.raises(SchemaError, match=message):
            checked_attributes("Thing", schema, fitted)
    assert checked_attributes("Thing", schema, {}) == {}


def test_a_default_stands_for_what_earlier_versions_did_not_write():
    schema = {"a_": Number(), "b_": Text(nullable=True, default=None)}
    assert checked_attributes("Thing", schema, {"a_": 1}) == {"a_": 1, "b_": None}


def test_every_class_that_can_be_saved_declares_its_attributes():
    for name in ranksvm.__all__:
        getattr(ranksvm, name)
    for cls in STORABLE.values():
        if hasattr(cls, "fit"):
            assert "n_features_in_" in schema_of(cls), cls
