"""Random changes to bytes, text, arrays and JSON, such as untrusted files may have."""

import json

import numpy as np

NUMBERS = [
    0,
    1,
    -1,
    2,
    7,
    127,
    128,
    255,
    65536,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    2**64,
]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 5e-324, 1e-308, 1e154, -1e155, 1e300, 1.7e308, -1.7e308]
VALUES = [
    None,
    True,
    False,
    "",
    "x",
    "\0",
    "1",
    [],
    {},
    [1],
    [[]],
    {"a": 1},
    {"type": "x"},
    {"type": "array", "name": "x"},
]
DTYPES = ["f4", "f8", ">f8", "i1", "i4", "i8", "u1", "u4", "u8", ">i8", "?", "c16", "U3", "S2", "f2"]
# Bytes with a meaning in some file format.
BYTES = b"\0\t\n\r #:+-.0123456789eEinfaNQqd\x7f\x80\xff\xef\xbb\xbf"


def pick(random, choices):
    """One of the choices."""
    return choices[int(random.integers(len(choices)))]


def some_value(random):
    """A JSON value that is unusual at the place where it is put."""
    return pick(random, [pick(random, NUMBERS), pick(random, FLOATS[:5] + FLOATS[8:]), pick(random, VALUES)])


def changed_bytes(random, content, most=4):
    """Make a few changes: flip bits; replace, insert, delete, double or move bytes; or cut off the end."""
    content = bytearray(content)
    for _ in range(int(random.integers(1, most + 1))):
        if not content:
            return bytes(content)
        at = int(random.integers(len(content)))
        length = int(min(len(content) - at, 1 << int(random.integers(0, 7))))
        kind = int(random.integers(8))
        if kind == 0:
            content[at] ^= 1 << int(random.integers(8))
        elif kind == 1:
            content[at] = pick(random, BYTES)
        elif kind == 2:
            content[at:at] = bytes(pick(random, BYTES) for _ in range(int(random.integers(1, 5))))
        elif kind == 3:
            del content[at : at + length]
        elif kind == 4:
            content[at:at] = content[at : at + length]
        elif kind == 5:
            to = int(random.integers(len(content)))
            content[to : to + length] = content[at : at + length]
        elif kind == 6:
            content[at : at + length] = bytes(random.integers(0, 256, length, dtype=np.uint8))
        elif random.random() < 0.3:
            del content[at:]
    return bytes(content)


def changed_array(random, array):
    """Change one value, the type, the shape, the order in memory or the order of the values of an array."""
    kind = int(random.integers(8))
    if kind == 0 and array.size and array.dtype.kind in "fiu":
        changed = array.copy()
        values = FLOATS if array.dtype.kind == "f" else [n for n in NUMBERS if _holds(array.dtype, n)]
        changed.reshape(-1)[int(random.integers(array.size))] = pick(random, values)
        return changed
    if kind == 1:
        with np.errstate(all="ignore"):
            try:
                return array.astype(pick(random, DTYPES))
            except (TypeError, ValueError):
                return array
    if kind == 2:
        return array[: int(random.integers(len(array) + 1))] if array.ndim else array.reshape(1)
    if kind == 3:
        return np.concatenate((array, array)) if array.ndim else array
    if kind == 4:
        return array.reshape(-1) if array.ndim != 1 else array[np.newaxis]
    if kind == 5:
        return np.asfortranarray(array.T.copy().T) if array.ndim > 1 else array[::-1].copy()
    if kind == 6 and array.size:
        return random.permutation(array.reshape(-1)).reshape(array.shape)
    return array[..., np.newaxis] if random.random() < 0.5 else np.zeros((0,) * array.ndim, array.dtype)


def changed_json(random, value):
    """Replace, remove, rename or double one node of a JSON value, in place."""
    nodes = list(_nodes(value))
    if not nodes:
        return some_value(random)
    holder, key = pick(random, nodes)
    kind = int(random.integers(6))
    if kind <= 2:
        holder[key] = some_value(random)
    elif kind == 3:
        del holder[key]
    elif kind == 4:
        other, other_key = pick(random, nodes)
        holder[key] = json.loads(json.dumps(other[other_key]))  # a copy, so that no value contains itself
    elif isinstance(holder, dict):
        holder[pick(random, ["x_", "coef_", "weights_", "type", "_x_", "", "n_jobs", "__class__"])] = holder.pop(key)
    else:
        holder.append(json.loads(json.dumps(holder[key])))
    return value


def _nodes(value):
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield value, key
        yield from _nodes(item)


def _holds(dtype, number):
    info = np.iinfo(dtype)
    return info.min <= number <= info.max
