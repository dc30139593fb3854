"""The published tables and figures of five papers on RankSVM, measured again: ours beside theirs, and judged.

The command ``ranksvm reproduce`` runs them, and is the interface. A paper is a module (`papers` names them) with its
published figures as data and an item for each table, figure or claim; an item gives paragraphs, tables and plots
(`results`), which `pages` writes.
"""
