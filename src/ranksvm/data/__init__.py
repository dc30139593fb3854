"""Ranking data: queries, pairs, files, scalers, generators. The only place where user input is judged."""

from ranksvm.data.pairs import ComparablePairs
from ranksvm.data.queries import Queries

__all__ = ["ComparablePairs", "Queries"]
