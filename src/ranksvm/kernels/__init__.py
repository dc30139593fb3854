"""Mercer kernels, the matrix of all pairs of documents, and features that stand for it."""

from ranksvm.kernels.functions import KERNELS, Kernel, kernel_named
from ranksvm.kernels.matrix import KernelMatrix, kernel_matrix

__all__ = ["KERNELS", "Kernel", "KernelMatrix", "kernel_matrix", "kernel_named"]
