"""Ranking data: queries, files, scalers, generators. The only place where user input is judged."""

from ranksvm.data.queries import Queries

__all__ = ["Queries"]
