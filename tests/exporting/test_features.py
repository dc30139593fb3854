"""The features of a model as an engine knows them: their names, and queries that compute them."""

import http.server
import json
import subprocess
import threading

import numpy as np
import pytest

from command_runner import command_runner
from export_runtimes import need
from ranksvm import AdditiveRankSVM, RankSVM, export, make_ranking
from ranksvm.cli import main
from ranksvm.exceptions import DataError, OptionError
from ranksvm.exporting.features import feature_templates, needed, parameters_of, read_templates

TITLE = {"match": {"title": "{{keywords}}"}}
AGE = {"function_score": {"functions": [{"exp": {"date": {"origin": "{{today}}", "scale": "{{ scale }}"}}}]}}
BRAND = {"terms": {"brand": "{{#toJson}}brands{{/toJson}}"}}
TEMPLATES = {"title": TITLE, "age": AGE, "brand": BRAND}


@pytest.fixture
def model():
    model = RankSVM()
    model.coef_, model.n_features_in_ = np.array([0.5, 0.0, -0.25]), 3
    model.feature_names_in_ = np.array(["title", "age", "brand"], dtype=object)
    return model


def test_queries_become_features_with_their_parameters():
    title, age, brand = feature_templates(TEMPLATES)
    assert title == {"name": "title", "params": ["keywords"], "template_language": "mustache", "template": TITLE}
    assert age["params"] == ["today", "scale"]
    assert brand["params"] == ["brands"]
    assert parameters_of([title, brand, title]) == ["keywords", "brands"]


@pytest.mark.parametrize("wrapped", [lambda body: body, lambda body: {"_source": body, "found": True}])
def test_a_feature_set_is_taken_as_it_is(wrapped):
    features = [*feature_templates({"title": TITLE}), {"name": "sum", "template": "title * 2", "params": []}]
    assert feature_templates(wrapped({"featureset": {"name": "mine", "features": features}})) == features


def test_features_that_a_model_does_not_need_are_left_out():
    features = feature_templates(TEMPLATES)
    assert [feature["name"] for feature in needed(features, ["brand", "title"])] == ["title", "brand"]
    features.append({"name": "both", "template_language": "derived_expression", "template": "title + age"})
    assert needed(features, ["both"]) == features


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "must be a dict of names and queries"),
        ({}, "must be a dict"),
        ({"title": "keywords"}, "the query of 'title' must be a dict"),
        ({"title": {}}, "the query of 'title' must be a dict"),
        ({"featureset": {"features": [{"name": "a"}]}}, "has a name and a template"),
        ({"featureset": {"features": [{"name": "a", "template": TITLE}] * 2}}, "two features are called 'a'"),
        *(
            ({"featureset": {"features": [{"name": "a", "template": TITLE, "params": wrong}]}}, "a list of names, got")
            for wrong in ("keywords", None, [{}])
        ),
    ],
)
def test_what_is_no_feature_set(given, words):
    with pytest.raises(OptionError, match=words):
        feature_templates(given)


def test_a_file_that_is_not_json(tmp_path):
    path = tmp_path / "templates.json"
    path.write_text('{"title": ')
    with pytest.raises(DataError, match=r"templates\.json: templates are queries in JSON"):
        read_templates(path)


@pytest.mark.parametrize("to", ["elasticsearch", "opensearch"])
def test_the_file_has_the_feature_set_and_the_search(model, to):
    document = json.loads(export(model, to=to, name="mine", templates=TEMPLATES).text)
    features = document["featureset"]["featureset"]["features"]
    assert [feature["name"] for feature in features] == ["title", "brand"]  # the weight of age is 0
    assert set(json.loads(document["request"]["model"]["model"]["definition"])) == {"title", "brand"}
    assert document["rescore"]["query"] == {
        "rescore_query": {
            "sltr": {"params": {"keywords": "{{keywords}}", "brands": "{{brands}}"}, "model": "mine"},
        },
        "query_weight": 0.0,
        "rescore_query_weight": 1.0,
    }


def test_an_additive_model():
    data = make_ranking(20, 10, 3, random_state=0)
    model = AdditiveRankSVM(C=0.01, linear=False).fit(data.X, data.y, qid=data.qid)
    names = {"f1": "title", "f2": "age", "f3": "brand"}
    document = json.loads(export(model, to="elasticsearch", names=names, templates=TEMPLATES).text)
    assert [feature["name"] for feature in document["featureset"]["featureset"]["features"]] == list(TEMPLATES)


def test_a_feature_without_a_query_and_a_format_without_queries(model):
    with pytest.raises(
        OptionError, match=r"templates has no feature 'brand'; its features are 'title'\. Map the names"
    ):
        export(model, to="elasticsearch", templates={"title": TITLE})
    with pytest.raises(OptionError, match="engines that compute features by queries, and solr does not"):
        export(model, to="solr", templates=TEMPLATES)


class Recorder(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    def record(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.command, self.path, json.loads(content)))
        self.send_response(200)
        self.end_headers()

    do_PUT = do_POST = record  # noqa: N815

    def log_message(self, *_):
        pass


def test_the_lines_that_install_both(model, tmp_path):
    need("curl")
    need("jq")
    text = export(model, tmp_path / "model.json", to="elasticsearch", store="my features", templates=TEMPLATES).text
    document = json.loads(text)
    with http.server.HTTPServer(("localhost", 0), Recorder) as server:
        server.requests = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        line = document["ranksvm"]["install"].replace("localhost:9200", f"localhost:{server.server_address[1]}")
        line = line.replace("curl", "curl --fail --noproxy '*' -s")
        subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True, timeout=60)
        server.shutdown()
    assert server.requests == [
        ("PUT", "/_ltr/_featureset/my%20features", document["featureset"]),
        ("POST", "/_ltr/_featureset/my%20features/_createmodel", document["request"]),
    ]


def test_the_command(tmp_path):
    data = make_ranking(5, 4, 3, random_state=0)
    model = RankSVM().fit(data.X, data.y, qid=data.qid)
    model.save(tmp_path / "model.rsvm")
    templates = dict(zip(("f1", "f2", "f3"), TEMPLATES.values(), strict=True))
    (tmp_path / "templates.json").write_text(json.dumps(templates))
    arguments = ["export", tmp_path / "model.rsvm", "--to", "elasticsearch", "--name", "mine"]
    arguments += ["--templates", tmp_path / "templates.json"]
    result = command_runner().invoke(main, list(map(str, arguments)))
    assert result.stdout == export(model, to="elasticsearch", name="mine", templates=templates).text
