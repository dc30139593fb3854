"""Features that options name: by name, or by number from 1, as in LETOR text."""

from collections.abc import Sequence

import click

__all__ = ["column_of"]


def column_of(option: str, feature: str, names: Sequence[str] | None, n_features: int) -> int:
    """The column, from 0, of a feature in the training data. A number that is a feature's name counts as the name."""
    if names is not None and feature in names:
        return names.index(feature)
    number = int(feature) if feature.isascii() and feature.isdigit() else 0
    if not 1 <= number <= n_features:
        known = f"numbers 1 to {n_features}" if names is None else f"such as {', '.join(map(repr, names[:5]))}"
        raise click.UsageError(f"{option}: there is no feature {feature!r} in the training data ({known}).")
    return number - 1
