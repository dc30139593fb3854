"""Mercer kernels, the matrix of all pairs of documents, and features that stand for it."""

from ranksvm.kernels.functions import KERNELS, Kernel, kernel_named

__all__ = ["KERNELS", "Kernel", "kernel_named"]
