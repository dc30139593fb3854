"""Learning and evaluation from clicks: logs, propensities, counterfactual estimates, interleaving, simulated users."""

from ranksvm.clicks.bias import PositionBias
from ranksvm.clicks.learning import ClickPairs, ClickValidation, click_pairs, fit_from_clicks, relevance
from ranksvm.clicks.log import ClickLog
from ranksvm.clicks.position_bias import position_bias
from ranksvm.clicks.simulation import attractiveness, simulate_clicks

__all__ = [
    "ClickLog",
    "ClickPairs",
    "ClickValidation",
    "PositionBias",
    "attractiveness",
    "click_pairs",
    "fit_from_clicks",
    "position_bias",
    "relevance",
    "simulate_clicks",
]
