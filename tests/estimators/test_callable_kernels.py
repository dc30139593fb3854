"""A kernel that is a function of the user's: one thread asks it at a time, whatever it is asked for."""

import threading

import pytest

from ranksvm import KernelRankSVM, make_ranking

DATA = make_ranking(n_queries=150, n_docs=20, n_features=4, random_state=0)


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans++", "leverage"])
@pytest.mark.parametrize("memory_limit", ["1GB", "2MB"])  # features kept, and computed at every pass
def test_nystroem_asks_on_one_thread(landmarks, memory_limit):
    threads = set()

    def k(X, Z):
        threads.add(threading.get_ident())
        return (1.0 + X @ Z.T) ** 2

    how = {"approximation": "nystroem", "n_components": 10, "landmarks": landmarks, "random_state": 0, "n_jobs": 3}
    model = KernelRankSVM(0.1, kernel=k, memory_limit=memory_limit, **how).fit(DATA.X, DATA.y, qid=DATA.qid)
    model.predict(DATA.X)
    assert threads == {threading.get_ident()}
    same = KernelRankSVM(0.1, kernel="poly", gamma=1.0, degree=2, **how).fit(DATA.X, DATA.y, qid=DATA.qid)
    assert model.objective_ == pytest.approx(same.objective_, rel=3e-4)
