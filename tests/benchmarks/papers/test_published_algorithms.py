"""The algorithms of Xu et al. in NumPy, and what is wrong in print, against differences of the objective."""

import numpy as np
import pytest

from papers.xu_2019 import errata
from papers.xu_2019.published_algorithms import Factors, algorithm_2, blocks_of, listed
from ranksvm import make_ranking


def test_the_corrected_gradients_are_exact_and_the_printed_ones_are_not():
    problem = errata.made()
    of_factors = errata.differences(problem.of_factors, problem.V)
    np.testing.assert_allclose(errata.gradient_of_factors(problem, 1.0), of_factors, rtol=1e-6, atol=1e-6)
    assert np.abs(errata.gradient_of_factors(problem, errata.C) - of_factors).max() > 0.1
    of_alpha = problem.pairs * errata.differences(problem.coupled, problem.alpha)
    np.testing.assert_allclose(errata.gradient_of_alpha(problem, 1.0), of_alpha, rtol=1e-6, atol=1e-6)
    assert np.abs(errata.gradient_of_alpha(problem, -1.0) - of_alpha).max() > 0.1


def test_the_page_says_which_update_rises_and_what_thresholding_fills(context):
    parts = {getattr(part, "name", None): part for part in errata.wrong_in_print(context)}
    verdicts = {row[0]: row[2] for row in parts["updates"].rows}
    assert verdicts == {
        "V + step (printed)": "**rises**",
        "V - step (corrected)": "falls",
        "alpha + step (printed)": "**rises**",
        "alpha - step (corrected)": "falls",
    }
    two, three = (row[3] for row in parts["thresholding"].rows)
    assert two == "0.0%"
    assert float(three.rstrip("%")) > 0.0


@pytest.fixture
def queries():
    return listed(make_ranking(5, 8, 4, n_levels=3, random_state=0))


def test_both_forms_of_algorithm_1_take_the_same_steps(queries):
    V = np.random.default_rng(0).uniform(0.0, 0.5, (40, 2))
    of_pairs, of_blocks = Factors(queries, V, 1.0), Factors(queries, V, 1.0)
    before = of_pairs.objective()
    for _ in range(3):
        of_pairs.epoch_of_pairs(1e-3)
        of_blocks.epoch_of_blocks(1e-3)
    np.testing.assert_allclose(of_pairs.V, of_blocks.V, rtol=1e-9)
    assert of_pairs.objective() == pytest.approx(of_blocks.objective())
    assert of_pairs.objective() < before


def test_algorithm_2_descends_with_its_safe_step(queries):
    rounds = algorithm_2(blocks_of(queries), C=1.0, gamma=0.5, lam=1.0)
    values = [next(rounds)[1] for _ in range(10)]
    assert np.all(np.diff(values) <= 1e-12)
