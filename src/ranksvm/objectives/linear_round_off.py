"""How far round-off moves value and certificate of a linear model: a bound, from what is known after an evaluation."""

from typing import Any

import numpy as np

from ranksvm.losses.round_off import UNIT, growth, margin_error

__all__ = ["STEP_ERRORS", "round_off"]

# A bound is good enough if it is this part of what the tolerance allows.
GOOD_ENOUGH = 0.01
# Relative errors that scores take, in units, when they are found from those of two other points.
STEP_ERRORS = 16


def round_off(objective: Any, point: Any, tol: float) -> float:
    """Bound on the errors of value and duality gap at a point of a `LinearObjective`.

    The dual variables that prove the gap are the pulls of the computed scores times C: feasible, whatever the scores
    are. At the true scores, which differ from the computed ones by round-off, the gap of w and these variables is
    ``1/2 |w - sum of alpha_ij (x_i - x_j)|^2`` plus, pair by pair, what the loss is above its tangent. The first part
    is that of the computed gradient up to the round-off of its sums, the second one is bounded for all pairs that are
    near the margin, so that the gap is proven for exact arithmetic.

    Parameters
    ----------
    objective : LinearObjective
        The problem.
    point : LinearPoint
        The point.
    tol : float
        Relative gap to be reached: a bound far below it need not be sharp.

    Returns
    -------
    float
        The bound: value and gap may each be off by no more, nor both together.
    """
    C, w, gradient, sizes = objective.C, point.w, point.gradient, objective.term.sizes()
    value = objective.certificate(point)[0]
    weights, slope = float(np.linalg.norm(w)), float(np.linalg.norm(gradient))
    gap_slope = objective.gap_slope(point)
    length, span = growth(len(w) + 4), sizes.longest
    off = margin_error(sizes.score(point.sizes()), sizes.entries, STEP_ERRORS * point.n_steps)
    bound = np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        for sharp in (False, True):
            loss = objective.term.round_off(point.at, objective.width, off, sharp)
            off_gradient = C * span * (loss.pull_sums + 2.0 * growth(sizes.additions + sizes.entries) * loss.pulls)
            off_gradient += length * (slope + 2.0 * weights)
            of_value = C * (loss.pulls * off + loss.beyond + loss.value) + length * weights**2
            of_gap = (gap_slope + off_gradient) * off_gradient + length * slope * gap_slope
            of_gap += C * (loss.beyond + loss.slack)
            bound = min(bound, of_value + of_gap + 2.0 * (loss.weights + 4.0 * UNIT) * value)
            if bound <= GOOD_ENOUGH * tol * value:
                break
    return bound
