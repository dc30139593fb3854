"""Errors in the paper, each with a computation that shows it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from papers.items import Context
from papers.results import Grid, Part

__all__ = ["wrong_in_print"]

# A problem that is small enough for finite differences: one query, labels 2, 1 and 0, and K factors per document.
LABELS = np.array([2.0, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
FEATURES, COMPONENTS, C = 4, 3, 2.0
GAMMA, LAM = 1.0, 0.5
STEP = 1e-5
# Length of the update steps, short enough that the objective is nearly linear along a step.
SHORT = 1e-4
SEED = 0


class Problem(NamedTuple):
    """Features, a matrix that marks pairs (documents by documents), factors, alpha, and its low-rank counterpart."""

    X: np.ndarray
    pairs: np.ndarray
    V: np.ndarray
    alpha: np.ndarray
    A: np.ndarray

    def value(self, alpha: np.ndarray) -> float:
        """Objective (4): half the squared norm of beta minus the sum of alpha."""
        beta = self.X.T @ (alpha.sum(axis=1) - alpha.sum(axis=0))
        return 0.5 * float(beta @ beta) - float(alpha.sum())

    def of_factors(self, V: np.ndarray) -> float:
        """Objective (4) with alpha_ij = <v_i, v_j>."""
        return self.value(self.pairs * (V @ V.T))

    def coupled(self, alpha: np.ndarray) -> float:
        """Objective (15) without the nuclear norm, which does not depend on alpha."""
        return self.value(alpha) + LAM * float(np.sum((self.pairs * (alpha - self.A)) ** 2))


def made() -> Problem:
    """A problem with random features and factors."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((len(LABELS), FEATURES))
    pairs = (LABELS[:, None] > LABELS[None, :]).astype(np.float64)
    V = rng.uniform(0.0, np.sqrt(C / COMPONENTS), (len(LABELS), COMPONENTS))
    return Problem(X, pairs, V, pairs * rng.uniform(0.0, C, pairs.shape), rng.uniform(0.0, C, pairs.shape))


def differences(value: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """The gradient, by central differences."""
    found = np.zeros_like(at)
    for place in np.ndindex(*at.shape):
        moved = np.zeros_like(at)
        moved[place] = STEP
        found[place] = (value(at + moved) - value(at - moved)) / (2.0 * STEP)
    return found


def gradient_of_factors(problem: Problem, constant: float) -> np.ndarray:
    """The gradient in (11), with ``constant`` instead of 1; the paper prints C."""
    X, pairs, V = problem.X, problem.pairs, problem.V
    alpha = pairs * (V @ V.T)
    scores = X @ (X.T @ (alpha.sum(axis=1) - alpha.sum(axis=0)))
    slope = pairs * (scores[:, None] - scores[None, :] - constant)
    return slope @ V + slope.T @ V


def gradient_of_alpha(problem: Problem, sign: float) -> np.ndarray:
    """The gradient in (18), with ``sign`` for the coupling term; the paper prints -1."""
    X, alpha = problem.X, problem.alpha
    scores = X @ (X.T @ (alpha.sum(axis=1) - alpha.sum(axis=0)))
    return problem.pairs * (scores[:, None] - scores[None, :] - 1.0 + sign * 2.0 * LAM * (alpha - problem.A))


def off(found: np.ndarray, exact: np.ndarray) -> str:
    """Relative distance, as text."""
    return f"{np.linalg.norm(found - exact) / np.linalg.norm(exact):.1e}"


def wrong_in_print(context: Context) -> list[Part]:
    """Compare gradients with differences, and both directions of a step; show what thresholding does to zeros."""
    problem = made()
    of_factors = differences(problem.of_factors, problem.V)
    of_alpha = problem.pairs * differences(problem.coupled, problem.alpha)
    gradients = Grid(
        "gradients",
        ["equation", "as printed: off the differences", "corrected: off the differences", "correction"],
        [
            (
                "(9) to (11), gradient in the factors",
                off(gradient_of_factors(problem, C), of_factors),
                off(gradient_of_factors(problem, 1.0), of_factors),
                f"- 1 in the place of - C (here C = {C:g}), as - e'alpha of (4) has it",
            ),
            (
                "(18), gradient in alpha",
                off(gradient_of_alpha(problem, -1.0), of_alpha),
                off(gradient_of_alpha(problem, 1.0), of_alpha),
                "+ 2 lambda (alpha - A) in the place of - 2 lambda (alpha - A)",
            ),
        ],
    )
    now, then = problem.of_factors(problem.V), {}
    for name, sign in (("V + step (printed)", 1.0), ("V - step (corrected)", -1.0)):
        then[name] = problem.of_factors(problem.V + sign * SHORT * of_factors) - now
    now_alpha = problem.coupled(problem.alpha)
    for name, sign in (("alpha + step (printed)", 1.0), ("alpha - step (corrected)", -1.0)):
        then[name] = problem.coupled(problem.alpha + sign * SHORT * of_alpha) - now_alpha
    updates = Grid(
        "updates",
        ["update along the exact gradient", "change of the objective", ""],
        [(name, f"{change:+.3g}", "falls" if change < 0 else "**rises**") for name, change in then.items()],
    )
    return [
        f"One query of {len(LABELS)} documents with labels 2, 1 and 0, {FEATURES} random features, {COMPONENTS} "
        f"factors, C = {C:g}. The dual (4) is minimized: 1/2 |sum of alpha_ij (x_i - x_j)|^2 - sum of alpha_ij. The "
        "printed formulas are as the equations have them; the exact gradient is by central differences of (4), and of "
        "(15) for (18).",
        "## Signs and constants",
        gradients,
        "## Ascent in the place of descent",
        "Both updates are printed as ascent; a step against the gradient is needed to minimize:",
        updates,
        "## Thresholding fills what is no pair (footnote 3)",
        _thresholding(),
        "Footnote 3 says that the low-rank matrix is 0 where there is no pair. With two levels the pairs are all of a "
        "rectangle, and it is so. With three, a block of the preferred by the other documents is block triangular, and "
        "thresholding its singular values fills the part that is 0. `RegularizedRankSVM` measures the distance of "
        "alpha to the low-rank matrix over the whole block.",
        "## The indicator function",
        "The indicator of the box 0 <= alpha <= C is printed as 0 outside of it and infinite within: with that every "
        "feasible alpha has an infinite objective. It is the other way round.",
    ]


def _thresholding() -> Grid:
    """Share of the energy of a thresholded block in entries that are not pairs."""
    rng = np.random.default_rng(SEED)
    rows = []
    for name, labels in (("two", np.minimum(LABELS, 1.0)), ("three", LABELS)):
        upper, lower = labels > labels.min(), labels < labels.max()
        pairs = labels[upper][:, None] > labels[lower][None, :]
        alpha = pairs * rng.uniform(0.0, C, pairs.shape)
        left, values, right = np.linalg.svd(alpha, full_matrices=False)
        low_rank = (left * np.maximum(0.0, values - GAMMA / (2.0 * LAM))) @ right
        outside = float(np.sum(low_rank[~pairs] ** 2) / np.sum(low_rank**2))
        rows.append((name, f"{pairs.shape[0]} x {pairs.shape[1]}", int(pairs.sum()), f"{outside:.1%}"))
    return Grid("thresholding", ["levels", "block", "pairs", "energy outside of the pairs"], rows)
