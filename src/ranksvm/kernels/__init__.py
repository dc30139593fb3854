"""Mercer kernels, the matrix of kernel values of all pairs of documents, and features that approximate it."""

from ranksvm.kernels.definiteness import check_definite, check_precomputed
from ranksvm.kernels.features import FOURIER_KERNELS, FeatureMap, FourierFeatures, NystroemFeatures, whitening
from ranksvm.kernels.functions import KERNELS, Kernel, kernel_named
from ranksvm.kernels.landmarks import LANDMARK_METHODS, choose_landmarks
from ranksvm.kernels.matrix import KernelMatrix, kernel_matrix, precomputed_matrix

__all__ = [
    "FOURIER_KERNELS",
    "FeatureMap",
    "FourierFeatures",
    "KERNELS",
    "Kernel",
    "KernelMatrix",
    "LANDMARK_METHODS",
    "NystroemFeatures",
    "check_definite",
    "check_precomputed",
    "choose_landmarks",
    "kernel_matrix",
    "kernel_named",
    "precomputed_matrix",
    "whitening",
]
