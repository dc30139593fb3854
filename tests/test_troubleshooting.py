"""docs/troubleshooting.md and docs/faq.md: every message that they quote is provoked here, none outlives its text."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

import ranksvm
from code_tables import DOCS
from command_runner import command_runner
from ranksvm import KernelRankSVM, RankSVM, RankSVMCV, cross_validate, make_ranking, metrics
from ranksvm.cli import main
from ranksvm.clicks import position_bias, simulate_clicks

PAGE = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
DATA = make_ranking(n_queries=6, n_docs=5, n_features=3, random_state=0)
X, Y, QID = DATA.X, DATA.y, DATA.qid


def fitted():
    return RankSVM(C=0.01).fit(X, Y, qid=QID)


def ranksvm_command(*words):
    """What a command prints to the standard error."""
    result = command_runner().invoke(main, [str(word) for word in words])
    assert result.exit_code != 0
    raise RuntimeError(result.stderr)


def damaged():
    path = Path("model.rsvm")
    fitted().save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    ranksvm.load(path)


def malformed():
    Path("data.txt").write_text("2 qid:1 1:0.5\n1 qid:1 1:abc\n")
    ranksvm.read_letor("data.txt")


def missing_values():
    changed = X.copy()
    changed[2, 1] = np.nan
    RankSVM().fit(changed, Y, qid=QID)


def other_scale():
    eval_set = [(X * 100, Y)]
    RankSVM(C=0.01).fit(X, Y, qid=QID, eval_set=eval_set, eval_qid=[QID])


def one_ranker():
    log = simulate_clicks(DATA, X[:, 0], 100, random_state=0)
    position_bias(log)


def frame():
    return pd.DataFrame(X, columns=["bm25", "length", "clicks"])


def exposed():
    ranksvm_command("serve", "--learner", "solar2", "--n-features", 3, "--host", "0.0.0.0", "--store", "events.db")


PROVOKED = [
    lambda: RankSVM().fit(X, Y),
    lambda: RankSVM().fit(X, np.ones(len(Y)), qid=QID),
    missing_values,
    lambda: RankSVM().fit(frame().assign(query_id=QID), Y, qid=QID),
    lambda: RankSVM().fit(frame().assign(title="t"), Y, qid=QID),
    lambda: fitted().predict(X[:, :2]),
    lambda: RankSVM(C=0.01).fit(frame(), Y, qid=QID).predict(frame()[["length", "bm25", "clicks"]]),
    lambda: RankSVM().predict(X),
    lambda: RankSVM(C=1e6, max_iter=1, tol=1e-12).fit(X, Y, qid=QID),
    other_scale,
    lambda: GridSearchCV(RankSVM(), {"C": [1.0]}, cv=ranksvm.QueryKFold(2)).fit(X, Y, qid=QID),
    lambda: metrics.evaluate(np.linspace(0, 1, len(Y)), Y, QID, "ndcg@10"),
    lambda: RankSVMCV(cv=2).fit(X, Y - 4.0, qid=QID),
    lambda: RankSVM().fit("train.txt", Y),
    malformed,
    damaged,
    lambda: cross_validate(RankSVM(), X, Y),
    lambda: KernelRankSVM(kernel="rbf", memory_limit="1kB").fit(X, Y, qid=QID),
    lambda: RankSVM().fit(np.ones_like(X), Y, qid=QID),
    one_ranker,
    lambda: ranksvm_command("train", "absent.txt", "-o", "model.rsvm"),
    exposed,
]


@pytest.fixture
def messages(tmp_path, monkeypatch):
    """The text of each error and warning that is provoked, in one line."""
    monkeypatch.chdir(tmp_path)
    found = []
    for provoke in PROVOKED:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises((Exception, Warning)) as caught:
                provoke()
        found.append(one_line(f"{type(caught.value).__name__}: {caught.value}"))
    return found


def one_line(text):
    return " ".join(text.split())


def quoted():
    """The messages of the page, each as a regular expression: ... stands for any text."""
    for block in re.findall(r"^```text\n(.*?)^```", PAGE, re.S | re.M):
        yield ".*".join(re.escape(part.strip()) for part in one_line(block).split("..."))


def test_every_message_of_the_page_is_one_of_the_package(messages):
    patterns = list(quoted())
    assert len(patterns) >= 20
    assert [pattern for pattern in patterns if not any(re.search(pattern, message) for message in messages)] == []


def test_every_message_that_is_provoked_is_on_the_page(messages):
    patterns = list(quoted())
    assert [message for message in messages if not any(re.search(pattern, message) for pattern in patterns)] == []


def test_messages_quoted_in_headings_of_the_faq_exist(messages):
    quotes = re.findall(r'^## "([^"]+)"', (DOCS / "faq.md").read_text(encoding="utf-8"), re.M)
    assert len(quotes) >= 2
    assert [quote for quote in quotes if not any(quote in message for message in messages)] == []
