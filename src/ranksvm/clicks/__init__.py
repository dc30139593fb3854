"""Learning and evaluation from clicks: logs, propensities, counterfactual estimates, interleaving, simulated users."""

from ranksvm.clicks.bias import PositionBias
from ranksvm.clicks.interleaving import (
    Interleaving,
    InterleavingTest,
    compare_credits,
    interleave,
    interleaving_credits,
)
from ranksvm.clicks.learning import ClickPairs, click_pairs, relevance
from ranksvm.clicks.log import ClickLog
from ranksvm.clicks.metarank import MetarankEvents, read_metarank
from ranksvm.clicks.position_bias import position_bias
from ranksvm.clicks.simulation import attractiveness, simulate_clicks
from ranksvm.clicks.validation import ClickValidation, fit_from_clicks

__all__ = [
    "ClickLog",
    "ClickPairs",
    "ClickValidation",
    "Interleaving",
    "InterleavingTest",
    "MetarankEvents",
    "PositionBias",
    "attractiveness",
    "click_pairs",
    "compare_credits",
    "fit_from_clicks",
    "interleave",
    "interleaving_credits",
    "position_bias",
    "read_metarank",
    "relevance",
    "simulate_clicks",
]
