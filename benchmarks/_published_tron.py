"""The published solver for the linear RankSVM, with which fits are compared; it is compiled on first use.

``_published_tron.cpp`` describes it. It is compiled like LIBLINEAR, with -O3 and without instruction sets of the
particular processor, by the C++ compiler that ``CXX`` names (default: c++), into ``build/benchmarks/``.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse

from ranksvm import RankingData

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(__file__).with_name("_published_tron.cpp")
FLAGS = ["-O3", "-std=c++17"]
# Largest number of accepted steps; the default and the smallest eps of the rule |gradient| <= eps |gradient at 0|.
MAX_ITER, DEFAULT_EPS, MIN_EPS = 1000, 1e-3, 1e-10

_double, _int64, _int = ctypes.c_double, ctypes.c_int64, ctypes.c_int
_doubles = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
_int64s = np.ctypeslib.ndpointer(np.int64, flags="C_CONTIGUOUS")
_int32s = np.ctypeslib.ndpointer(np.int32, flags="C_CONTIGUOUS")


def compiler() -> str | None:
    """Path of the C++ compiler, if there is one."""
    return shutil.which(os.environ.get("CXX", "c++"))


def built(name: str, *more: str) -> Path:
    """The library or program with this name; it is compiled if the source or the compiler has changed."""
    command = [compiler() or "c++", *FLAGS, *more, str(SOURCE)]
    version = subprocess.run([command[0], "--version"], check=True, capture_output=True, text=True).stdout
    key = hashlib.sha256(f"{command}{version}{SOURCE.read_text(encoding='utf-8')}".encode()).hexdigest()[:16]
    target = ROOT / "build" / "benchmarks" / f"{name}-{key}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"{target.name}.{os.getpid()}.part")
        subprocess.run([*command, "-o", str(temporary)], check=True)
        os.replace(temporary, target)
    return target


def program() -> Path:
    """The program; ``PROGRAM C eps TEXT MODEL`` reads a text file, fits a model, and writes its weights."""
    return built("published_tron")


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(built("published_tron.so", "-shared", "-fPIC")))
    library.problem_new.restype = ctypes.c_void_p
    library.problem_new.argtypes = [_int64, _int64, _doubles, _int32s, _int64s, _doubles, _int64s]
    library.problem_free.argtypes = [ctypes.c_void_p]
    library.problem_free.restype = None
    library.problem_value.restype = _double
    library.problem_value.argtypes = [ctypes.c_void_p, _double, _doubles]
    library.problem_fit.restype = _int
    library.problem_fit.argtypes = [
        *(ctypes.c_void_p, _double, _double, _int, _doubles),
        *(ctypes.POINTER(_int), _int, _doubles, _doubles),
    ]
    return library


@dataclass
class Fit:
    """Weights; objective and relative norm of the gradient, at the start and after every accepted step."""

    coef: np.ndarray
    n_products: int
    values: np.ndarray
    gradients: np.ndarray

    @property
    def n_iter(self) -> int:
        """Number of accepted steps."""
        return len(self.values) - 1


class PublishedProblem:
    """Data in the solver's format, so that the conversion is not part of a fit's time.

    Parameters
    ----------
    data : RankingData
        Rows, labels and queries; values of X that are 0 are not stored.
    """

    def __init__(self, data: RankingData):
        X = scipy.sparse.csr_matrix(data.X)
        _, queries = np.unique(data.qid, return_inverse=True)
        self.n_features = X.shape[1]
        self._handle = _library().problem_new(
            *X.shape,
            X.data.astype(np.float64),
            X.indices.astype(np.int32),
            X.indptr.astype(np.int64),
            np.ascontiguousarray(data.y, dtype=np.float64),
            np.ascontiguousarray(queries, dtype=np.int64),
        )

    def __del__(self):
        if hasattr(self, "_handle"):
            _library().problem_free(self._handle)

    def value(self, C: float, coef: np.ndarray) -> float:
        """The objective at some weights, in float64."""
        return _library().problem_value(self._handle, C, np.ascontiguousarray(coef, dtype=np.float64))

    def fit(self, C: float, eps: float = DEFAULT_EPS, max_iter: int = MAX_ITER) -> Fit:
        """Minimize until the norm of the gradient is at most ``eps`` times that at 0, or for ``max_iter`` steps."""
        coef, products = np.empty(self.n_features), _int()
        values, gradients = np.empty(MAX_ITER + 1), np.empty(MAX_ITER + 1)
        n_iter = _library().problem_fit(
            self._handle, C, eps, max_iter, coef, ctypes.byref(products), MAX_ITER + 1, values, gradients
        )
        return Fit(coef, products.value, values[: n_iter + 1].copy(), gradients[: n_iter + 1].copy())
