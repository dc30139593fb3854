"""The letor convention gives LETOR's own tables for SVM-rank, to the printed digit."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from ranksvm import metrics

FILES = {"testing": "test", "validation": "vali", "training": "train"}
# The training folds 4 and 5 of the reference scores are joined from the five parts in another order.
PARTS = {4: [1, 4, 5], 5: [1, 2, 5]}
# One printed cell of 660 is not what the scores give, 0.44094971, for a reason unknown: reversing the order of tied
# documents or rounding the values per query to 4, 5 or 6 digits does not make it the printed one.
UNEXPLAINED = {("MQ2008", "train", 5, "ndcg@8"): "0.4410"}


def read_tables(path):
    """(part, fold) -> {column: printed value} of a LETOR evaluation file."""
    tables, part, columns = {}, None, None
    for line in path.read_text().splitlines():
        if found := re.match("performance on (\\w+) set", line, re.IGNORECASE):
            part = FILES[found[1]]
        elif line.startswith("Folds"):
            columns = line.split()[1:]
        elif line.startswith("Fold"):
            fold, *values = line.split()
            tables.setdefault((part, int(fold[4:])), {}).update(zip(columns, values, strict=True))
    return tables


def our_name(column):
    return {"MeanNDCG": "mean_ndcg", "MAP": "map"}.get(column, column.lower())


def load(path):
    _, y, qid = load_svmlight_file(str(path), query_id=True)
    return y, qid


# Of the two models behind the tables, the scores are those of the one chosen by NDCG.
@pytest.mark.parametrize(("dataset", "folder"), [("MQ2008", "Mq2008"), ("OHSUMED", "OHSUMED")])
def test_tables_are_reproduced_to_the_printed_digit(shared_data, dataset, folder):
    reference = shared_data / "reference-svm_rank"
    tables = read_tables(reference / "eval" / folder / f"NDCG_{folder}_svm_rank")
    assert len(tables) == 15
    cells = 0
    for (part, fold), table in tables.items():
        if part == "train" and fold in PARTS:
            # Part S_i of the data is the test part of the fold after i.
            parts = [load(shared_data / dataset / f"Fold{(s % 5) + 1}" / "test.txt.gz") for s in PARTS[fold]]
            y, qid = (np.concatenate(column) for column in zip(*parts, strict=True))
        else:
            y, qid = load(shared_data / dataset / f"Fold{fold}" / f"{part}.txt.gz")
        scores = np.loadtxt(reference / "data" / folder / f"Fold{fold}" / f"{part}_score")
        columns = {our_name(column): printed for column, printed in table.items()}
        result = metrics.evaluate(y, scores, qid, list(columns), convention="letor")
        for name, printed in columns.items():
            cell = (dataset, part, fold, name)
            # half a unit of the last digit: some values lie on a rounding edge but for the last bit of a sum
            agrees = abs(result.means[name] - float(printed)) <= 0.5e-4 + 1e-12
            assert agrees or UNEXPLAINED.get(cell) == printed, (cell, result.means[name], printed)
            cells += 1
    assert cells == 15 * 22
