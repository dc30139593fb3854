"""The commands ``ranksvm serve``, ``ranksvm keys`` and ``ranksvm vacuum``, without a server."""

import json

import msgspec
import pytest

import ranksvm
from command_runner import command_runner
from ranksvm.cli import main
from ranksvm.cli.commands import serve
from ranksvm.serving.click_learning import RULES, ClickLearning, curve
from ranksvm.serving.feature_range import RangeRule
from ranksvm.serving.learner import Learner, Schedule, begin
from ranksvm.serving.learning import CHAMPION, Settings
from ranksvm.serving.records import Entry, Kind
from ranksvm.serving.store import open_store

from .conftest import event


def run(*arguments, code=0):
    result = command_runner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def started(monkeypatch):
    """What `serve` was called with, instead of serving."""
    calls = []

    def serve(service, host, port, *, tell):
        calls.append((service.options, service.settings, dict(service.learner.served.models), host, port))
        service.close()

    monkeypatch.setattr("ranksvm.serving.http_server.serve", serve)
    return calls


def test_a_new_store_begins_with_a_model_and_goes_on_with_it(tmp_path, started):
    model, store = tmp_path / "model.rsvm", tmp_path / "events.db"
    ranksvm.save(ranksvm.SOLARRanker(order=2).learn_one_query([[1.0, 0.0], [0.0, 1.0]], [1, 0]), model)
    assert "the store is new" not in run("serve", "--model", model, "--store", store, "--quiet").stderr
    run("serve", "--store", store)
    assert "has models already" in run("serve", "--model", model, "--store", store).stderr
    (_, settings, models, host, port), *_ = started
    assert (settings.names, settings.metric, host, port) == (["f1", "f2"], "ndcg@10", "127.0.0.1", 8765)
    assert models["champion"].coef_.any()
    assert len(started) == 3


def test_a_new_model_by_its_learner(tmp_path, started):
    run(
        "serve",
        "--learner",
        "solar1",
        "-C",
        0.1,
        "--n-features",
        5,
        "--store",
        tmp_path / "events.db",
        "--metric",
        "map",
    )
    ((_, settings, models, *_),) = started
    assert (settings.metric, len(settings.names)) == ("map", 5)
    assert (models["champion"].order, models["champion"].C) == (1, 0.1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--learner", "solar2"], "give --n-features"),
        (["--n-features", 3, "--host", "0.0.0.0"], "make an API key first"),
        (["--n-features", 3, "--explore", "team-draft"], "needs a second model"),
        (["--n-features", 3, "--metric", "nothing"], "nothing"),
        (["--n-features", 3, "--metric", "err@5"], "--metric err@5 needs the highest grade"),
        (["--n-features", 3, "--explore", "epsilon", "--epsilon", "nan"], "'nan' is not a number from 0 to 1"),
        (["--learner", "prank", "--n-features", 3], "needs --levels"),
        (["--n-features", 3, "--trusted-proxy", "proxy.internal"], "give an address such as 10.0.0.5"),
        (["--n-features", 3, "--trusted-proxy", "10.0.0.5/8"], "has host bits set"),
    ],
    ids=str,
)
def test_what_cannot_be_served_is_refused(tmp_path, started, arguments, words):
    assert words in run("serve", "--store", tmp_path / "events.db", *arguments, code=2).stderr
    assert started == []


def test_the_scopes_of_a_key_may_be_given_one_by_one(tmp_path):
    store = tmp_path / "events.db"
    run("keys", store, "--add", "shop", "--scopes", "rank", "--scopes", "read")
    assert "rank, read" in run("keys", store).stdout


def test_other_machines_need_keys_or_consent(tmp_path, started):
    store = tmp_path / "events.db"
    run("serve", "--store", store, "--n-features", 3, "--host", "0.0.0.0", "--insecure")
    run("keys", store, "--add", "shop")
    run("serve", "--store", store, "--host", "0.0.0.0")
    assert len(started) == 2


@pytest.mark.parametrize("arguments", [["--explore", "team-draft"], ["--host", "0.0.0.0"], ["--metric", "nothing"]])
def test_a_refused_command_chooses_no_model_for_the_store(tmp_path, started, arguments):
    store = tmp_path / "events.db"
    run("serve", "--store", store, "--n-features", 3, *arguments, code=2)
    run("serve", "--store", store, "--n-features", 5)
    ((_, settings, *_),) = started
    assert len(settings.names) == 5


def test_options_of_a_new_store_that_have_no_effect_later_are_named(tmp_path, started):
    given = ["serve", "--store", tmp_path / "events.db", "--n-features", 3, "--metric", "nDCG@10"]
    assert "no effect" not in run(*given).stderr
    assert "no effect" not in run(*given).stderr
    output = run(*given[:3], "--n-features", 5, "--metric", "map", "--refit-every", 20).stderr
    for words in ("--n-features 3: --n-features 5", "--metric ndcg@10: --metric map", "1000: --refit-every 20"):
        assert words in output
    assert "no effect" not in run(*given[:3]).stderr


def test_an_address_that_cannot_be_used_is_named(tmp_path):
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    given = "serve", "--store", tmp_path / "events.db", "--n-features", 3, "--insecure", "--host", "192.0.2.1"
    output = run(*given, "--port", 8765, code=1).stderr
    assert "Error: cannot listen at 192.0.2.1, port 8765 (" in output
    assert "): name another --port or --host." in output


def test_proxies_and_connections_of_clients(tmp_path, started):
    proxies = ["--trusted-proxy", "10.0.0.5", "--trusted-proxy", "fd00::/8"]
    run("serve", "--store", tmp_path / "events.db", "--n-features", 3, "--max-connections", 7, *proxies)
    ((options, *_),) = started
    assert (options.trusted_proxies, options.limits.connections) == (("10.0.0.5/32", "fd00::/8"), 7)


def test_keys_are_made_listed_and_revoked(tmp_path):
    store = tmp_path / "events.db"
    assert "no such file" in run("keys", store, code=1).stderr
    assert "cannot name a key" in run("keys", store, "--add", " ", code=2).stderr
    assert "no keys" in run("keys", store).stderr
    made = json.loads(run("keys", store, "--add", "shop", "--json").stdout)
    assert made["key"].startswith("rsvm_")
    assert run("keys", store, "--add", "operator", "--scopes", "read,admin").stdout.startswith("rsvm_")
    assert json.loads(run("keys", store, "--json").stdout)["keys"] == [
        {"name": "operator", "scopes": ["read", "admin"]},
        {"name": "shop", "scopes": ["rank", "feedback"]},
    ]
    assert "a key 'shop' already" in run("keys", store, "--add", "shop", code=2).stderr
    for name in ("", " ", "a\nb"):
        assert "cannot name a key" in run("keys", store, "--add", name, code=2).stderr
    assert "give --add" in run("keys", store, "--scopes", "read", code=2).stderr
    assert "not a scope" in run("keys", store, "--add", "x", "--scopes", "all", code=2).stderr
    run("keys", store, "--revoke", "shop")
    assert "no key 'shop'" in run("keys", store, "--revoke", "shop", code=2).stderr
    opened = open_store(str(store))
    assert made["key"].encode() not in b"".join(hash for _, hash, _ in opened.api_keys())
    opened.close()


def test_old_events_are_removed_and_their_space_is_given_back(tmp_path, monkeypatch):
    monkeypatch.setattr("ranksvm.serving.learning._MAX_REPEATED_ENTRIES", 10)
    path = tmp_path / "events.db"
    store = open_store(str(path))
    settings = Settings(["f1", "f2", "f3"], refit_window=10)
    model = ranksvm.SOLARRanker(random_state=0)
    begin(store, {CHAMPION: model}, settings, at=0.0)
    events = [event(number, n_documents=40) for number in range(300)]  # of 1970
    store.append(events)
    labels = msgspec.msgpack.encode({"labels": [1] + [0] * 39})
    store.append([Entry(Kind.FEEDBACK, one.id, labels, 1000.0) for one in events[:100]])
    learner = Learner(store, Schedule(1000, 0.0))
    while learner.step():
        pass
    learner.close()
    store.close()
    assert json.loads(run("vacuum", path, "--json").stdout)["removed"] == 0
    found = json.loads(run("vacuum", path, "--retain", 30, "--json").stdout)
    assert found["removed"] == 290  # all but those that learning may look back at
    assert found["bytes"] == path.stat().st_size < found["bytes_before"] / 3
    assert "0.0 MB" not in run("vacuum", path).stdout
    run("replay", path)
    assert "does not exist" in run("vacuum", tmp_path / "other.db", code=2).stderr


def click_learning(path):
    """How the service of a store learns from clicks, after all of its log."""
    store = open_store(str(path))
    learner = Learner(store, Schedule(1000, 0.0))
    while learner.step():
        pass
    learner.close()
    found = begin(store, None, None, at=0.0).click_learning
    store.close()
    return found


def test_how_clicks_are_learned_from_is_chosen_and_changed(tmp_path, started):
    store, bias = tmp_path / "events.db", tmp_path / "bias.json"
    run("serve", "--n-features", 3, "--store", store)
    assert click_learning(store) == ClickLearning("shown", **curve("estimated"), follow_drift=True)
    ranksvm.clicks.PositionBias([1.0, 0.4]).save(bias)
    run("serve", "--store", store, "--bias", bias)
    assert click_learning(store).propensity == [1.0, 0.4]
    run("serve", "--store", store, "--click-rule", "skip-above")
    found = click_learning(store)
    assert (found.rule, found.propensity) == ("skip_above", [1.0, 0.4])
    run("serve", "--store", store)
    assert click_learning(store) == found
    run("serve", "--store", store, "--bias", "power:0.5", "--click-rule", "shown", "--ignore-drift")
    assert click_learning(store) == ClickLearning("shown", **curve("power", 0.5), follow_drift=False)
    opened = open_store(str(store))
    assert opened.head[0] == 3  # only changes are in the log
    opened.close()
    ranksvm.clicks.PositionBias([1.0, 0.4], offset=[0.0, 0.1]).save(bias)
    assert "without --trust" in run("serve", "--store", store, "--bias", bias, code=2).stderr
    assert "does not exist" in run("serve", "--store", store, "--bias", "steep", code=2).stderr


def test_fair_pairs_bring_their_rule(tmp_path, started):
    run("serve", "--n-features", 3, "--explore", "fair-pairs", "--store", tmp_path / "events.db")
    assert click_learning(tmp_path / "events.db").rule == "fair_pairs"


def test_an_old_store_gets_the_rule_of_today(tmp_path, started):
    store = open_store(str(tmp_path / "events.db"))
    begin(store, {CHAMPION: ranksvm.SOLARRanker()}, Settings(["f1"]), at=0.0, click_learning=ClickLearning())
    store.close()
    run("serve", "--store", tmp_path / "events.db")
    assert click_learning(tmp_path / "events.db") == ClickLearning("shown", **curve("estimated"), follow_drift=True)


def test_the_command_knows_every_rule():
    assert serve.RULES == RULES


def range_rule(path):
    """What a store does with features outside their range, after all of its log."""
    store = open_store(str(path))
    learner = Learner(store, Schedule(1000, 0.0))
    while learner.step():
        pass
    learner.close()
    found = begin(store, None, None, at=0.0).range.rule
    store.close()
    return found


def test_the_range_of_features_is_chosen_and_changed(tmp_path, started):
    store = tmp_path / "events.db"
    run("serve", "--n-features", 3, "--store", store)
    assert range_rule(store) == RangeRule("clip", 5.0)
    run("serve", "--store", store, "--feature-range", "refuse:20")
    assert range_rule(store) == RangeRule("refuse", 20.0)
    run("serve", "--store", store)
    assert range_rule(store) == RangeRule("refuse", 20.0)
    run("serve", "--store", store, "--feature-range", "none")
    assert not range_rule(store).limits
    run("serve", "--store", store, "--feature-range", "clip")
    run("serve", "--store", store, "--feature-range", "clip:5")
    assert range_rule(store) == RangeRule("clip", 5.0)
    opened = open_store(str(store))
    assert opened.head[0] == 3  # only changes are in the log
    opened.close()
    for wrong in ("cut", "none:3", "clip:0.5", "clip:1e7", "clip:", "refuse:x", "clip:inf"):
        assert "--feature-range" in run("serve", "--store", store, "--feature-range", wrong, code=2).stderr
    run("serve", "--n-features", 3, "--store", tmp_path / "other.db", "--feature-range", "none")
    assert range_rule(tmp_path / "other.db") == RangeRule("none")


def test_an_old_store_gets_a_range(tmp_path, started):
    store = open_store(str(tmp_path / "events.db"))
    begin(store, {CHAMPION: ranksvm.SOLARRanker()}, Settings(["f1"]), at=0.0, range_rule=RangeRule())
    store.close()
    assert "had no range of features" in run("serve", "--store", tmp_path / "events.db").stderr
    assert range_rule(tmp_path / "events.db") == RangeRule("clip", 5.0)
