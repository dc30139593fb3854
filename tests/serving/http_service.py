"""A client, and a service that runs in threads of the test process and listens on a local port."""

import http.client
import json
import threading

from ranksvm.serving.http_server import bound_server
from ranksvm.serving.learner import Learner, Schedule, begin
from ranksvm.serving.learner_process import LearnerProcess
from ranksvm.serving.learning import CHAMPION, Settings
from ranksvm.serving.service import Options, Service
from ranksvm.serving.store import open_store

QUICK = Schedule(5, 0.05)


class Client:
    """Requests over one connection; answers are (status, content, headers)."""

    def __init__(self, port, key=None, host="127.0.0.1"):
        self.port, self._key, self._host = port, key, f"{host}:{port}"
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def send(self, method, path, body=None, kind="application/json", **headers):
        given = {"Host": self._host, "Content-Type": kind} | {k.replace("_", "-"): v for k, v in headers.items()}
        if self._key is not None:
            given["Authorization"] = f"Bearer {self._key}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self._connection.request(method, path, body, given)
        answer = self._connection.getresponse()
        content, kind = answer.read(), answer.getheader("Content-Type", "")
        return answer.status, json.loads(content) if "json" in kind else content, dict(answer.getheaders())

    def get(self, path, **options):
        return self.send("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.send("POST", path, body, **options)

    def rank(self, X, query=None):
        status, content, _ = self.post("/v1/rank", {"matrix": X} | ({} if query is None else {"query": query}))
        assert status == 200, content
        return content

    def feedback(self, event, **said):
        return self.post(f"/v1/events/{event}/feedback", said)[:2]

    def close(self):
        self._connection.close()


class Running:
    """A service on a store, listening."""

    def __init__(
        self, url, models=None, names=("f1", "f2", "f3"), schedule=QUICK, process=False, host="127.0.0.1", **options
    ):
        wait = options.get("reward_wait")
        self.store = open_store(url, reward_wait=wait)
        models = None if models is None else models if isinstance(models, dict) else {CHAMPION: models}
        begin(self.store, models, None if models is None else Settings(list(names)), at=0.0)
        # a learner in the process of the tests starts a second faster, and tests can change its store
        learner = LearnerProcess(self.store, url, schedule, wait, "zero") if process else Learner(self.store, schedule)
        self.service = Service(self.store, learner, Options(**options))
        ready = threading.Event()
        self._server, socket = bound_server(self.service, host, 0, tell=lambda line: ready.set())
        self.port = socket.getsockname()[1]
        self._thread = threading.Thread(target=self._server.run, args=([socket],), daemon=True)
        self._thread.start()
        assert ready.wait(30)

    def client(self, **options):
        return Client(self.port, **options)

    def stop(self):
        self._server.should_exit = True
        self._thread.join()
