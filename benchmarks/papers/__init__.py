"""Reproductions of the published tables and figures of five papers on RankSVM, with a judgment of each difference.

``python benchmarks/reproduce.py`` runs them. Each paper is a module (`papers` lists these modules). It has the
published figures as data, and an item for each table, figure or claim. An item gives paragraphs, tables and plots
(`results`), and `pages` writes them.
"""
