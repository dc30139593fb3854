"""make_report: what is in a report, for models of every kind; what is refused."""

import dataclasses
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from html import unescape

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ranksvm
from ranksvm import metrics
from ranksvm.analysis import feature_importance, weight_intervals
from ranksvm.exceptions import DataError, MissingDependencyError, OptionError
from ranksvm.report import make_report

SECTIONS = ["data", "fit", "path", "metrics", "curves", "queries", "weights", "worst", "scores", "origin"]


@pytest.fixture(scope="module")
def data():
    return ranksvm.make_ranking(30, n_docs=8, n_features=3, random_state=1)


def fitted(model, data):
    return model.fit(data.X, data.y, qid=data.qid)


def section(report, name):
    """The text of a section, without marks."""
    html = re.search(rf'<section id="{name}".*?</section>', report.html, re.DOTALL)[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def test_html_is_valid_and_no_id_is_twice(report):
    html5lib = pytest.importorskip("html5lib", reason="html5lib is not installed: HTML is not validated")
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(report.html)
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert [element.get("id") for element in tree.iter("section")] == SECTIONS
    links = [element.get("href") for element in tree.iter() if element.get("href", element.get("xlink:href"))]
    assert all(link[1:] in ids for link in links if link)
    for figure in tree.iter("figure"):
        assert figure.find("div").get("aria-label")
    regions = [element.get("aria-label") for element in tree.iter() if element.get("role") == "region"]
    assert len(regions) == len(set(regions))


def test_nothing_is_outside_the_page(report):
    # the names of the languages of SVG are no addresses that anyone opens
    addresses = set(re.findall(r"https?://[^\"' )<]*", report.html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert not re.search(r"\b(src|srcset)=|@import|url\((?!#)", report.html)
    assert "default-src 'none'" in report.html


def test_markup_is_escaped_everywhere(report):
    assert report.html.count("<script>") == 1
    assert "document.title='broken'</script>" not in report.html
    assert report.html.count("&lt;script&gt;") > 100


def test_the_same_arguments_give_the_same_bytes(data):
    train, test = data.select(data.qid < 15), data.select(data.qid >= 15)
    model = fitted(ranksvm.RankSVM(), train)
    options = {"train": train, "baselines": {"a": test.X[:, 0]}}
    assert make_report(model, test, n_jobs=1, **options).html == make_report(model, test, n_jobs=2, **options).html


def test_reports_in_threads_have_the_same_bytes_and_leave_the_style_of_the_user(data):
    from matplotlib import rcParams

    model, before = fitted(ranksvm.RankSVM(), data), dict(rcParams)
    alone = make_report(model, data, n_worst=0).html
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda _: make_report(model, data, n_worst=0).html, range(6)))
    assert set(found) == {alone}
    assert dict(rcParams) == before


def test_the_style_of_the_user_does_not_matter(data):
    from matplotlib import pyplot, rcParams

    model = fitted(ranksvm.RankSVM(), data)
    open_before = pyplot.get_fignums()
    before = make_report(model, data).html
    with pyplot.rc_context({"font.size": 30, "axes.facecolor": "black", "text.usetex": False}):
        assert make_report(model, data).html == before
        assert rcParams["font.size"] == 30
    assert pyplot.get_fignums() == open_before


def test_the_numbers_are_those_of_the_package(data):
    train, test = data.select(data.qid < 20), data.select(data.qid >= 20)
    model = fitted(ranksvm.RankSVM(C=0.1), train)
    report = make_report(model, test, train=train, baselines={"one": test.X[:, 0], "two": test.X[:, 1]})
    found = metrics.evaluate(test.y, model.predict(test.X), test.qid, ["ndcg@10", "map"])
    assert report.evaluations["model"]["map"] == found["map"]
    low, high = found.interval("ndcg@10")
    assert f"{found['ndcg@10']:.4f} (95 % interval {low:.4f} to {high:.4f})" in report.html
    compared = metrics.compare_systems(report.evaluations, "ndcg@10", baseline="model")
    assert [one for one in report.comparisons if one.metric == "ndcg@10"] == [one.swapped() for one in compared]
    words = section(report, "metrics")
    assert "corrected by Holm's procedure for the 2 comparisons of each metric" in words
    for one in compared:
        assert f"{-one.difference:+.4f}" in words
        assert f"{one.adjusted_p_value:.4f}" in words
    weights = section(report, "weights")
    importance = feature_importance(model, test.X, test.qid)
    assert f"{importance.max() / importance.sum():.1%}" in weights
    low, _ = weight_intervals(model, train.X, train.y, train.qid).interval()
    assert f"{low[np.argmax(importance)]:.4f}"[:5] in weights
    assert f"lower by more than {model.duality_gap_:.3g} " in section(report, "fit")
    worst = section(report, "worst")
    values = found.per_query["ndcg@10"]
    assert f"Query {found.qid[values.argmin()]}: ndcg@10 {values.min():.4f}, 8 documents" in worst


def test_one_baseline_has_nothing_to_correct(data):
    model = fitted(ranksvm.RankSVM(), data)
    report = make_report(model, data, baselines={"one": data.X[:, 0]})
    assert "not corrected for the number of comparisons" in section(report, "metrics")
    assert "p (Holm)" not in report.html
    assert "It is better than one" in report.html


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (make_pipeline(StandardScaler(), ranksvm.RankSVM()), {"worst": "contribute most"}),
        (make_pipeline(ranksvm.QueryMinMaxScaler(), ranksvm.RankSVM()), {"worst": "contribute most"}),
        (ranksvm.KernelRankSVM(gamma=0.1), {"weights": "there are no weights", "worst": "there are no weights"}),
        (ranksvm.KernelRankSVMCV(Cs=[0.1, 1.0], gammas=[0.1, 1.0], cv=2), {"path": "were chosen among 4 settings"}),
        (ranksvm.KernelRankSVMCV(Cs=[0.1, 1.0], gammas=[0.1, 1.0], cv=2), {"path": "gamma is at the end of its range"}),
        (ranksvm.RankSVMCV(Cs=[0.1, 1.0], cv=2), {"path": "C is at the end of its range"}),
        (ranksvm.FactorizedRankSVM(random_state=0), {"fit": "not convex", "weights": "Only weights of a RankSVM"}),
        (ranksvm.RankSVM(monotone="decreasing"), {"weights": "because monotone does not admit their sign"}),
        (ranksvm.RegularizedRankSVM(), {"fit": "no model of this kind", "path": "no other C was tried"}),
        (ranksvm.SOLARRanker(random_state=0), {"fit": "one query after another"}),
        (ranksvm.PRanker(random_state=0), {"fit": "one query after another"}),
        (ranksvm.PerceptronCommitteeRanker(random_state=0), {"fit": "one query after another"}),
    ],
)
def test_every_kind_of_model(model, words, data):
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            sklearn.clone(model).fit(data.X, data.y, qid=data.qid) if hasattr(model, "steps") else fitted(model, data)
        )
    report = make_report(model, data, train=data, n_worst=2)
    for name, text in words.items():
        assert text in section(report, name)
    assert re.findall(r'<section id="(\w+)"', report.html) == SECTIONS
    assert report.html.count("<details>") == 2


def test_a_section_that_does_not_apply_is_a_sentence(data):
    report = make_report(fitted(ranksvm.RankSVM(), data), data)
    assert "need the training data" in section(report, "weights")
    assert "no other C was tried" in section(report, "path")
    assert "No baseline was given" in section(report, "metrics")
    assert "no wins and losses" in section(report, "queries")
    assert "The training data were not given" in section(report, "data")
    assert "made in Python" in section(report, "origin")


def test_degenerate_data():
    data = ranksvm.make_ranking(10, n_docs=5, n_features=2, random_state=0)
    model = fitted(ranksvm.RankSVM(), data)
    # queries of one document, without relevant documents, without any pair
    flat = ranksvm.RankingData(data.X[:4], np.zeros(4), np.array([1, 2, 2, 3]))
    report = make_report(model, flat, baselines={"other": np.zeros(4)}, metrics=["pairwise_accuracy", "ndcg@10"])
    assert "No query has documents with different labels" in section(report, "worst")
    assert "nan" not in report.html
    alone = ranksvm.RankingData(data.X[:1], np.ones(1), np.array(["a"]))
    assert "nan" not in make_report(model, alone).html
    no_ids = ranksvm.RankingData(data.X[:5], data.y[:5])
    assert "Query 0" in make_report(model, no_ids).html


def test_a_sparse_matrix_and_many_features():
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = sp.random(200, 1000, 0.02, format="csr", random_state=0)
    data = ranksvm.RankingData(X, rng.integers(0, 3, 200), np.repeat(np.arange(20), 10))
    report = make_report(fitted(ranksvm.RankSVM(), data), data)
    assert "700 less important features are not shown" in section(report, "weights")


def test_large_data_make_no_large_page():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(4000), 3)
    data = ranksvm.RankingData(rng.normal(size=(12000, 5)), rng.integers(0, 3, 12000), qid)
    model = fitted(ranksvm.RankSVM(C=1e-4), data)
    report = make_report(model, data, baselines={f"feature {j}": data.X[:, j] for j in range(5)})
    assert len(report.html.encode()) < 1_000_000
    assert "queries with the smallest difference are not shown" in section(report, "queries")
    assert "Differences are drawn for 3 of 5 baselines" in section(report, "queries")


def test_real_data_make_a_small_page(shared_data):
    folder = shared_data / "MQ2008" / "Fold1"
    train, test = (ranksvm.read_letor(folder / f"{part}.txt.gz") for part in ("train", "test"))
    model = ranksvm.RankSVMCV(Cs=2.0 ** np.arange(-16, -9), cv=2).fit(train.X, train.y, qid=train.qid)
    report = make_report(model, test, train=train, baselines={"feature 37": test.X[:, 36]})
    assert len(report.html.encode()) < 1_000_000


def test_data_the_model_was_not_trained_on_are_refused(data):
    train, test = data.select(data.qid < 20), data.select(data.qid >= 20)
    model = fitted(ranksvm.RankSVM(), train)
    with pytest.raises(DataError, match="have 203 pairs, but the model was trained on 366: these are not"):
        make_report(model, test, train=test)
    weighted = ranksvm.RankSVM(tol=1e-8).fit(train.X, train.y, qid=train.qid, query_weight=1.0 + (train.qid % 2))
    with pytest.raises(DataError, match=r"certificates allow .*with weights or listed pairs"):
        make_report(weighted, test, train=train)
    narrow = ranksvm.RankingData(train.X[:, :2], train.y, train.qid)
    with pytest.raises(DataError, match="train has 2 features, the data of the report 3"):
        make_report(model, test, train=narrow)


def test_features_in_another_order_are_refused(data):
    """They were scored with the weights of other features."""
    names = [f"feature {number}" for number in range(data.n_features)]
    named = dataclasses.replace(data, feature_names=names)
    ranker = ranksvm.RankSVM(C=0.1).fit(named.to_frame(library="pandas")[names], data.y, qid=data.qid)
    turned = dataclasses.replace(data, X=data.X[:, ::-1], feature_names=names[::-1])
    last = data.n_features - 1
    with pytest.raises(DataError, match=f"column 0 of the data is 'feature {last}', but .* 'feature 0' there"):
        make_report(ranker, turned)
    with pytest.raises(DataError, match="feature_names_in_"):
        make_report(ranksvm.RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid), turned, baselines={"named": ranker})


def test_what_is_refused(data):
    model = fitted(ranksvm.RankSVM(), data)
    for wrong, error, words in (
        ({"baselines": {"model": data.X[:, 0]}}, OptionError, "a baseline has the name of the model, 'model'"),
        ({"correction": "fdr"}, OptionError, "correction must be one of"),
        ({"n_worst": -1}, OptionError, "n_worst must be a whole number from 0"),
        ({"metrics": "ndgc"}, OptionError, "ndgc"),
        ({"train": data.X}, OptionError, r"train must be RankingData\(X, y, qid\), got a ndarray"),
        ({"baselines": {"short": [1.0]}}, DataError, "scores"),
        (
            {"baselines": [data.X[:, 0]]},
            OptionError,
            "baselines must be a dict from names to models or scores, got a list",
        ),
        ({"name": 5}, OptionError, "name must be text that is not empty, got 5"),
    ):
        with pytest.raises(error, match=words):
            make_report(model, data, **wrong)
    for wrong in (data.X, None):
        with pytest.raises(OptionError, match="data must be RankingData"):
            make_report(model, wrong)
    with pytest.raises(OptionError, match="model must be a fitted ranker, or a Pipeline that ends with one, got 5"):
        make_report(5, data)
    with pytest.raises(DataError, match="data has no rows"):
        make_report(model, ranksvm.RankingData(np.zeros((0, 3)), np.zeros(0), np.zeros(0)))


@pytest.mark.parametrize(("module", "words"), [("jinja2", '"ranksvm\\[report\\]"'), ("matplotlib", "needs matplotlib")])
def test_a_missing_package_is_named_before_any_work(module, words, data, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=words):
        make_report(None, data)


def test_a_notebook_shows_it_in_a_frame(report):
    shown = report._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert shown.count("<") == 2
    assert "bytes)" in repr(report)


def test_a_report_is_saved_as_it_is(report, tmp_path):
    report.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_bytes().decode() == report.html


def test_a_report_on_an_additive_model(data):
    model = ranksvm.AdditiveRankSVM(C=0.1, interactions=1).fit(data.X, data.y, qid=data.qid)
    named = ranksvm.RankingData(data.X, data.y, data.qid, None, ["price", "new", "age"])
    report = make_report(model, named)
    found = section(report, "weights")
    assert "Shapes and importance" in found
    assert "Pairs of features" in found
    first, second = (["price", "new", "age"][feature] for feature in model.interactions_[0])
    assert f"{first} x {second}" in found
    # pictures within SVG would be refused by the page
    assert "<image" not in report.html
    assert "mostly by" in section(report, "worst")
    assert "no other C was tried" in section(report, "path")
    plain = make_report(ranksvm.AdditiveRankSVM(C=0.1).fit(data.X, data.y, qid=data.qid), data)
    assert "Pairs of features" not in section(plain, "weights")


def test_the_settings_of_an_additive_model_that_chose_them(data):
    model = ranksvm.AdditiveRankSVMCV([0.01, 0.1], step_weights=[0.5, 1.0], cv=2).fit(data.X, data.y, qid=data.qid)
    found = section(make_report(model, data), "path")
    words = f"C = {model.C_:g} with step weight {model.step_weight_:g} and 0 interactions was chosen among 4 settings"
    assert words in found
    assert "step weight" in found


def test_the_standard_error_after_early_stopping_is_for_the_chosen_settings():
    train, valid = (
        ranksvm.make_ranking(n, n_docs=10, n_features=4, random_state=seed) for n, seed in ((30, 9), (20, 109))
    )
    model = ranksvm.KernelRankSVMCV([1e-3, 0.1, 1.0, 10.0], [0.05, 0.5], early_stopping_rounds=1)
    model.fit(train.X, train.y, qid=train.qid, eval_set=(valid.X, valid.y), eval_qid=valid.qid)
    row, column = list(model.gammas_).index(model.gamma_), list(model.Cs_).index(model.C_)
    assert row == 1
    assert np.isnan(model.mean_scores_[0, -1])  # not tried
    found = section(make_report(model, valid, n_worst=0), "path")
    assert f"among {np.isfinite(model.mean_scores_).sum()} settings" in found
    assert f"± {model.standard_errors_[row, column]:.4f} (one standard error)" in found


def test_the_choice_of_a_kernel_names_c_and_gamma_and_leaves_room_for_the_curves(data):
    model = fitted(ranksvm.KernelRankSVMCV(Cs=[0.1, 1.0], gammas=[0.25, 0.5], cv=2, rule="one_standard_error"), data)
    html = re.search(r'<section id="path".*?</section>', make_report(model, data, n_worst=0).html, re.DOTALL)[0]
    words = f"C = {model.C_:g} and gamma = {model.gamma_:g} were chosen among 4 settings by ndcg@10 (one-standard-error"
    assert words in html
    # the background of the axes, in points; the figure is 302 points wide
    x = [float(x) for x in re.search(r'id="path-patch_2">\s*<path d="M ([^"]*)"', html)[1].split()[::3][:2]]
    assert max(x) - min(x) > 200


def test_a_baseline_with_the_same_values(data):
    model = fitted(ranksvm.RankSVM(C=0.1), data)
    report = make_report(model, data, baselines={"twin": 2 * model.predict(data.X)}, n_worst=0)
    assert "No query has a different ndcg@10 with twin." in report.html


def test_weights_of_features_in_very_different_units(data):
    scaled = dataclasses.replace(data, X=data.X.astype(np.float64) * [1e6, 1.0, 1.0])
    model = fitted(ranksvm.RankSVM(C=0.1), scaled)
    text = section(make_report(model, scaled, train=scaled, n_worst=0), "weights")
    for value in (
        model.coef_[0],
        *(end[0] for end in weight_intervals(model, scaled.X, scaled.y, scaled.qid).interval()),
    ):
        assert f"{value:.4g}" in text


def test_the_mean_over_pairs_is_named(data):
    model = fitted(ranksvm.RankSVM(C=0.1), data)
    for names, said in ((["ndcg@5"], False), (["ndcg@5", "pairwise_accuracy"], True)):
        report = make_report(model, data, metrics=names, n_worst=0)
        assert ("a mean over the pairs of all queries" in section(report, "metrics")) == said


@pytest.mark.filterwarnings("error:Glyph")
def test_names_in_letters_that_matplotlib_cannot_draw(data):
    model = fitted(ranksvm.AdditiveRankSVM(C=0.1), data)
    named = dataclasses.replace(data, feature_names=["价格", "größe", "цена"])
    assert "价格" in section(make_report(model, named, n_worst=1), "weights")


def test_names_written_from_right_to_left_leave_numbers_in_their_place(data):
    named = dataclasses.replace(data, feature_names=["نسبة", "b", "c"])
    model = fitted(ranksvm.RankSVM(C=0.1), data)
    report = make_report(model, named, baselines={"עברית": data.X[:, 0]})
    assert "than \u2068עברית\u2069: +" in report.html
    assert re.search("\u2068نسبة\u2069 [+-]", section(report, "worst"))


@pytest.mark.filterwarnings("ignore:The fit found nothing to learn")
def test_equal_scores_are_named(data):
    zero = dataclasses.replace(data, X=np.zeros_like(data.X))
    model = fitted(ranksvm.RankSVM(C=0.1), zero)
    found = section(make_report(model, zero, n_worst=1), "worst")
    assert "although their scores are equal" in found
    assert "by 0" not in found


def test_a_caption_counts_one_feature_in_the_singular(data):
    one = dataclasses.replace(data, X=data.X[:, :1])
    linear = make_report(fitted(ranksvm.RankSVM(C=0.1), one), one, train=one)
    assert "The largest weight with its 95 % interval, from" in section(linear, "weights")
    additive = make_report(fitted(ranksvm.AdditiveRankSVM(C=0.1), one), one)
    assert "What the most important feature adds to scores" in section(additive, "weights")


def test_many_systems_with_long_names_leave_room_for_their_curves(data):
    model = fitted(ranksvm.RankSVM(C=0.1), data)
    baselines = {f"PRODUCTION_RANKER_2024_Q{n}_FINAL": data.X[:, n % 3] for n in range(12)}
    html = make_report(model, data, baselines=baselines, n_worst=0).html
    y = [float(y) for y in re.search(r'id="curves-patch_2">\s*<path d="M ([^"]*)"', html)[1].split()[1::3][:3]]
    assert max(y) - min(y) > 90
