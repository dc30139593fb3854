"""Mercer kernels, the matrix of all pairs of documents, and features that stand for it."""

from ranksvm.kernels.features import FOURIER_KERNELS, FeatureMap, FourierFeatures, NystroemFeatures, whitening
from ranksvm.kernels.functions import KERNELS, Kernel, kernel_named
from ranksvm.kernels.landmarks import LANDMARK_METHODS, choose_landmarks
from ranksvm.kernels.matrix import KernelMatrix, kernel_matrix

__all__ = [
    "FOURIER_KERNELS",
    "KERNELS",
    "LANDMARK_METHODS",
    "FeatureMap",
    "FourierFeatures",
    "Kernel",
    "KernelMatrix",
    "NystroemFeatures",
    "choose_landmarks",
    "kernel_matrix",
    "kernel_named",
    "whitening",
]
