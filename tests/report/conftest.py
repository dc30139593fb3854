"""Data whose names contain HTML markup, and a report on them."""

import numpy as np
import pytest

import ranksvm

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("jinja2", reason="jinja2 is not installed")

# A page must show this text unchanged, wherever names occur.
MARKUP = "<script>document.title='broken'</script>\"'&$"


def named_data(n_queries=40, seed=0):
    """Data whose features, documents and queries have names that contain markup."""
    data = ranksvm.make_ranking(n_queries, n_docs=9, n_features=4, random_state=seed)
    return ranksvm.RankingData(
        data.X,
        data.y,
        np.array([f"{MARKUP}q{query}" for query in data.qid]),
        np.array([f"{MARKUP}d{row}" for row in range(data.n_rows)]),
        [f"{MARKUP}f{column}" for column in range(4)],
    )


@pytest.fixture(scope="session")
def parts():
    """Training and test data."""
    data = named_data()
    numbers = data.queries.numbers()
    return data.select(numbers < 20), data.select(numbers >= 20)


@pytest.fixture(scope="session")
def report(parts):
    """A report with all sections."""
    from ranksvm.report import make_report

    train, test = parts
    model = ranksvm.RankSVMCV(Cs=[0.01, 0.1, 1.0], cv=2).fit(train.X, train.y, qid=train.qid)
    other = ranksvm.KernelRankSVM(C=0.1, gamma=0.1).fit(train.X, train.y, qid=train.qid)
    return make_report(
        model,
        test,
        train=train,
        baselines={f"{MARKUP}kernel": other, "first feature": test.X[:, 0]},
        name=f"{MARKUP}model",
        title=f"{MARKUP}title",
        command=f"ranksvm report {MARKUP}",
    )
