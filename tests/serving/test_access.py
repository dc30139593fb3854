"""Who is answered: names of this machine, API keys that were revoked, and odd headers."""

import threading

import pytest

import ranksvm
from ranksvm.serving.access import Keys, add_key, is_loopback
from ranksvm.serving.requests import Problem
from ranksvm.serving.store import open_store

from .http_service import Running

pytest.importorskip("starlette", reason="starlette is not installed: no service is tested")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: no service is tested")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.9.8.7", "::1", "[::1]"])
def test_names_of_this_machine(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["127.attacker.example", "127.0.0.1.attacker.example", "localhost.example", "10.0.0.1", "", "[", "::2", "127."],
)
def test_names_that_may_point_anywhere(host):
    assert not is_loopback(host)


@pytest.fixture
def running(tmp_path):
    service = Running(
        str(tmp_path / "events.db"), ranksvm.SOLARRanker(random_state=0), allowed_hosts=("shop.internal",)
    )
    yield service
    service.stop()


@pytest.mark.parametrize("host", ["127.attacker.example", "[", "a:b:c", "//[", ""])
def test_a_page_with_a_name_of_its_own_is_not_answered(running, host):
    client = running.client()
    for method, path, body in (("GET", "/v1/models", None), ("POST", "/v1/rank", {"matrix": [[1, 2, 3]]})):
        status, problem, _ = client.send(method, path, body, Host=host, Origin=f"http://{host}")
        assert (status, problem["type"]) == (403, "urn:ranksvm:problem:host")
    client.close()


def test_a_name_that_is_allowed_is_answered(running):
    client = running.client()
    assert client.get("/v1/models", Host=f"Shop.internal:{running.port}")[0] == 200
    client.close()


@pytest.mark.parametrize("origin", ["//[", "http://[", "null", "http://attacker.example"])
def test_an_odd_origin_is_another_site(running, origin):
    client = running.client()
    status, problem, _ = client.post("/v1/rank", {"matrix": [[1, 2, 3]]}, Origin=origin)
    assert (status, problem["type"]) == (403, "urn:ranksvm:problem:origin")
    client.close()


def test_the_path_of_a_file_is_not_made_of_the_host(running):
    client = running.client()
    for host in ("localhost/../../dev/zero?", "localhost/page.js?"):
        status, content, _ = client.get("/", Host=host)
        assert status in (200, 403)
        if status == 200:
            assert content.startswith(b"<!doctype html>")
    client.close()


@pytest.mark.parametrize("path", ["/page.js%0A", "/%0A", "//page.js", "/../page.js", "/page.js/..%2F..%2F", "/%2e%2e/"])
def test_the_path_of_a_file_is_not_made_of_the_address(running, path):
    client = running.client()
    assert client.get(path)[0] in (200, 404)
    client.close()


def test_no_answer_leads_to_the_host_that_was_named(running):
    client = running.client()
    status, problem, headers = client.get("/v1/models/", Host="attacker.example")
    assert (status, problem["type"]) == (404, "urn:ranksvm:problem:address")
    assert "attacker.example" not in str(headers)
    client.close()


def test_revoking_the_last_key_gives_nobody_access(tmp_path):
    store = open_store(str(tmp_path / "events.db"))
    keys, insecure = Keys(store), Keys(store, insecure=True)
    assert (bool(keys), keys.check(None, "rank")) == (False, None)
    key = add_key(store, "shop", ["rank"])
    insecure.reload()
    with pytest.raises(Problem, match="an API key is needed"):  # while there are keys, --insecure changes nothing
        insecure.check(None, "rank")
    store.remove_key("shop")
    for one in (keys, insecure, Keys(store)):
        one.reload()
    assert insecure.check(None, "rank") is None
    for one in (keys, Keys(store)):
        assert one
        with pytest.raises(Problem, match="all API keys were revoked") as refused:
            one.check(f"Bearer {key}", "rank")
        assert refused.value.status == 401
    store.close()


def test_a_wrong_key_is_told_from_a_missing_one(tmp_path):
    store = open_store(str(tmp_path / "events.db"))
    add_key(store, "shop", ["rank"])
    keys = Keys(store)
    with pytest.raises(Problem, match="an API key is needed"):
        keys.check(None, "rank")
    with pytest.raises(Problem, match="the API key is not known"):
        keys.check("Bearer rsvm_mistyped", "rank")
    store.close()


def test_keys_that_were_read_first_do_not_replace_later_ones(tmp_path, monkeypatch):
    store = open_store(str(tmp_path / "events.db"))
    keys, read, has_read, go_on = Keys(store), store.api_keys, threading.Event(), threading.Event()

    def slow():
        found = read()
        monkeypatch.setattr(store, "api_keys", read)
        has_read.set()
        assert go_on.wait(20)
        return found

    monkeypatch.setattr(store, "api_keys", slow)
    threads = [threading.Thread(target=keys.reload)]
    threads[0].start()
    assert has_read.wait(20)
    key = add_key(store, "new", ["rank"])
    threads.append(threading.Thread(target=keys.reload))
    threads[1].start()
    threads[1].join(0.2)
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert keys.check(f"Bearer {key}", "rank") == "new"
    store.close()
