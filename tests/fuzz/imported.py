"""Fuzz `import_model`: files of SVM-rank, LIBLINEAR and LIBSVM, and files of names, with changed bytes or words."""

import re

import numpy as np

import ranksvm
from fuzz.mutations import FLOATS, NUMBERS, changed_bytes, pick
from ranksvm import import_model
from ranksvm.exceptions import RankSVMError
from ranksvm.exporting.features import read_names

DATA = ranksvm.make_ranking(n_queries=10, n_docs=8, n_features=5, random_state=0)
FORMATS = ("svm-rank", "liblinear", "libsvm")
OF_CLASSES = (
    b"solver_type L2R_LR\nnr_class 2\nlabel -1 1\nnr_feature 3\nbias 1\nw\n0.5 \n-1.25 \n0 \n0.25 \n",
    b"svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1\n"
    + b"SV\n1 1:0.5 3:1 \n-1 2:1 \n",
    b"SVM-light Version V6.20\n"
    + b"0 # kernel type\n"
    + b"1 #\n" * 7
    + b"3 # vectors plus 1\n0.5 # b\n1 1:2 3:1 #\n-1 2:1 #\n",
)
NAMES = (
    b"bm25\nlinks\nage\n",
    b"f1\tbm25\nf3 age of it\n",
    b'{"f1": "bm25"}',
    b'["a", "b", "c"]',
    b"\xef\xbb\xbf# all\na\nb\nc\n",
)
WORDS = re.compile(rb"[^\s:#]+")


class Target:
    """Import changed files of other programs."""

    def __init__(self, folder):
        self.path, self.saved = folder / "model", folder / "saved"
        ranker = ranksvm.RankSVM(C=0.1).fit(DATA.X, DATA.y, qid=DATA.qid)
        self.files = [*OF_CLASSES, *(ranksvm.export(ranker, to=to).content for to in FORMATS)]

    def run(self, random):
        """Import and use one changed file."""
        if random.random() < 0.2:
            self._names(random)
            return
        changed = changed_bytes if random.random() < 0.4 else _changed_words
        self.path.write_bytes(changed(random, pick(random, self.files)))
        options = {
            "format": pick(random, ["auto", "auto", *FORMATS]),
            "n_features": pick(random, [None, None, 3, 5, 9]),
        }
        try:
            model = import_model(self.path, **options)
        except RankSVMError as error:
            _names_the_file(error, self.path)
            return
        if model.n_features_in_ <= 100_000:
            self._use(model, random)

    def _use(self, model, random):
        """Predict, save and export; only errors of ranksvm are accepted."""
        assert np.isfinite(model.coef_).all(), "weights that are not finite"
        X = random.normal(size=(4, model.n_features_in_))
        try:
            scores = model.predict(X)
        except RankSVMError:  # scores overflow
            return
        ranksvm.save(model, self.saved)
        assert np.array_equal(ranksvm.load(self.saved).predict(X), scores)
        for to in ("solr", "python", *FORMATS):
            try:
                content = ranksvm.export(model, to=to).content
            except RankSVMError:  # weights are too large for float32, or there are none
                continue
            if to in FORMATS:
                self.path.write_bytes(content)
                again = import_model(self.path, n_features=model.n_features_in_)
                np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-6)

    def _names(self, random):
        self.path.write_bytes(changed_bytes(random, pick(random, NAMES)))
        try:
            model = import_model([0.5, -1.0, 2.0], names=read_names(self.path))
        except RankSVMError:
            return
        assert len(set(model.feature_names_in_)) == 3


def _names_the_file(error, path):
    assert str(path) in str(error), error


def _changed_words(random, content):
    """Replace one to three words by numbers or other words, or remove or double them."""
    for _ in range(int(random.integers(1, 4))):
        words = list(WORDS.finditer(content))
        if not words:
            break
        word = pick(random, words)
        kind = int(random.integers(6))
        if kind <= 2:
            new = str(pick(random, [pick(random, NUMBERS), pick(random, FLOATS)])).encode()
        elif kind == 3:
            new = pick(random, words)[0]
        elif kind == 4:
            new = pick(random, [b"", b"x", b"1_0", b"\xd9\xa3", b"1e999", b"0x10", b"9" * 5000, b"1:1:1", b"-0"])
        else:
            new = word[0] + pick(random, [b" ", b"", b":", b"\n"]) + word[0]
        content = content[: word.start()] + new + content[word.end() :]
    return content
