"""The published tables and figures of five papers on RankSVM, measured again: ours beside theirs, and judged.

``python benchmarks/reproduce.py`` runs them. A paper is a module (`papers` names them) with its published figures as
data and an item for each table, figure or claim; an item gives paragraphs, tables and plots (`results`), which
`pages` writes.
"""
