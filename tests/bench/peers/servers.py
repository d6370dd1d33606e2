"""The three servers: how each is started, sent spans, asked for them, watched and killed."""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterable
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from load import Load

READY_SECONDS_MAX = 120
ANSWER_SECONDS_MAX = 120
# How often a reading is tried again where its connection breaks.
BROKEN_MAX = 30
BROKEN_WAIT_SECONDS = 1
# A server that uses less than this share of a processor has done what its clients left it to do.
QUIET_SHARE = 0.05
QUIET_LOOK_SECONDS = 2
QUIET_LOOKS_MAX = 60
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
KEY = "sk-assayBenchAssayBenchAssayBenchAssayBenchAssayB"


class Sending(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    status: int
    body: bytes
    retry_after: str | None

    def json(self) -> dict[str, Any]:
        if self.status != 200:
            raise RuntimeError(f"{self.status}: {self.body[:300]!r}")
        told: dict[str, Any] = json.loads(self.body)
        return told


class Client:
    """One connection, kept alive."""

    def __init__(self, port: int) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS_MAX)

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> Answer:
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        return Answer(answer.status, answer.read(), answer.headers.get("Retry-After"))

    def get(self, path: str) -> Answer:
        """Patiently: a server may end a worker that was too slow for it, and the connection with it."""
        for _ in range(BROKEN_MAX):
            with contextlib.suppress(OSError, HTTPException):
                return self.send("GET", path, {})
            self.connection.close()
            time.sleep(BROKEN_WAIT_SECONDS)
        return self.send("GET", path, {})

    def post(self, path: str, asked: object, headers: dict[str, str]) -> Answer:
        return self.send("POST", path, headers | {"Content-Type": "application/json"}, json.dumps(asked).encode())


class Server:
    """A process tree of its own on a directory of its own."""

    name = ""
    # What an answer to a write promises; each says where that was looked up.
    durability = ""
    ready_path = ""

    def __init__(self, program: Path, directory: Path) -> None:
        self.program, self.directory = program, directory
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        raise NotImplementedError

    def version(self) -> str:
        raise NotImplementedError

    def prepare(self) -> None:
        """Makes what spans are sent to."""

    def sending(self, load: Load, number: int) -> Sending:
        raise NotImplementedError

    def readable(self, traces: list[str]) -> set[str]:
        """The ids of those spans of these traces that the server's own API gives out."""
        raise NotImplementedError

    def client(self) -> Client:
        return Client(self.port)

    def start(self) -> float:
        """On what is in the directory; the seconds until it says that it is ready."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        with self.directory.with_suffix(".log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.directory,
                env={"PATH": os.environ["PATH"], "HOME": str(self.directory)} | self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        began = time.perf_counter()
        while time.perf_counter() - began < READY_SECONDS_MAX and self.process.poll() is None:
            with contextlib.suppress(OSError, HTTPException):
                if self.client().send("GET", self.ready_path, {}).status == 200:
                    return time.perf_counter() - began
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not start: see {self.directory.with_suffix('.log')}")

    def kill(self) -> None:
        """`kill -9` of every process of the tree, and waits until none is left."""
        while tree := self.tree():
            for pid in tree:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        if self.process:
            self.process.wait()

    def tree(self) -> list[int]:
        """Those that live of the session that the server was started in: it is the server's alone."""
        if not self.process:
            return []
        found = []
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            fields = stat(pid)
            if fields and int(fields[3]) == self.process.pid and fields[0] != "Z":
                found.append(pid)
        return found

    def resident(self) -> tuple[int, int]:
        """Bytes: the sum over the tree, and the same with what several processes share counted once."""
        rss = pss = 0
        for pid in self.tree():
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            except OSError:
                continue
            sizes = {name: int(size) * 1024 for name, size in re.findall(r"^(\w+): +(\d+) kB$", text, re.MULTILINE)}
            rss, pss = rss + sizes.get("Rss", 0), pss + sizes.get("Pss", 0)
        return rss, pss

    def cpu_seconds(self) -> float:
        """What its processes used, and those that they started and that have ended."""
        ticks = sum(sum(map(int, fields[11:15])) for pid in self.tree() if (fields := stat(pid)))
        return ticks / TICKS_PER_SECOND

    def quiet(self) -> None:
        """Waits until it has done what its clients left it to do; not for ever, for some always do a little."""
        for _ in range(QUIET_LOOKS_MAX):
            before = self.cpu_seconds()
            time.sleep(QUIET_LOOK_SECONDS)
            if self.cpu_seconds() - before < QUIET_SHARE * QUIET_LOOK_SECONDS:
                return

    def disk_bytes(self) -> int:
        """What the file system has given the directory, not what the files say of their length."""
        return sum(path.stat().st_blocks * 512 for path in self.directory.rglob("*") if path.is_file())


class Assay(Server):
    name = "Assay"
    # storage/log: a group's entry is answered for by one fdatasync; cluster/raft acknowledges after that and the apply.
    durability = "fdatasync of the log before the answer"
    ready_path = "/readyz"
    events = ""

    def command(self) -> list[str]:
        return [
            *(str(self.program), "serve", "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.directory)),
            *("--set", "http.otlp_listen=off"),
        ]

    def environment(self) -> dict[str, str]:
        return {"ASSAY_API_KEY": KEY}

    def version(self) -> str:
        said = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True)
        return said.stdout.split()[-1]

    def prepare(self) -> None:
        project = self.client().post("/v1/project", {"name": "bench"}, self.headers()).json()
        self.events = f"/v1/project_logs/{project['id']}"

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}

    def sending(self, load: Load, number: int) -> Sending:
        return Sending(f"{self.events}/insert", self.headers(), load.rows(number))

    def readable(self, traces: list[str]) -> set[str]:
        """Rows are not asked for by id at this stage: pages of whole traces, newest first, until all were seen."""
        client, wanted = self.client(), set(traces)
        found: set[str] = set()
        asked: dict[str, object] = {"limit": min(1000, max(20, len(traces)))}
        while wanted:
            page = client.post(f"{self.events}/fetch", asked, self.headers()).json()
            rows = [row for row in page["events"] if row["root_span_id"] in wanted]
            found.update(row["span_id"] for row in rows if row["output"])
            wanted.difference_update([row["root_span_id"] for row in rows])
            if not page.get("cursor"):
                break
            asked["cursor"] = page["cursor"]
        return found


class Peer(Server):
    """One that is installed from the package index, and takes OTLP."""

    package = ""
    # As many as fit one answer of either.
    traces_per_answer = 100

    def version(self) -> str:
        asked = f"import importlib.metadata as m; print(m.version({self.package!r}))"
        said = subprocess.run([self.program / "bin/python", "-c", asked], capture_output=True, text=True, check=True)
        return said.stdout.strip()

    def headers(self) -> dict[str, str]:
        return {"Content-Type": "application/x-protobuf"}

    def sending(self, load: Load, number: int) -> Sending:
        return Sending("/v1/traces", self.headers(), load.otlp(number))

    def readable(self, traces: list[str]) -> set[str]:
        client = self.client()
        found: set[str] = set()
        for first in range(0, len(traces), self.traces_per_answer):
            found.update(self.spans_of(client, traces[first : first + self.traces_per_answer]))
        return found

    def spans_of(self, client: Client, traces: list[str]) -> Iterable[str]:
        raise NotImplementedError


class Phoenix(Peer):
    name = "Phoenix"
    package = "arize-phoenix"
    # phoenix/server/api/routers/v1/traces.py (the spans go to a background task and a queue after the answer),
    # phoenix/db/bulk_inserter.py, phoenix/db/engines.py (journal_mode = WAL, synchronous = OFF).
    durability = "queued in memory; then SQLite commit, WAL, synchronous=OFF"
    ready_path = "/readyz"

    def command(self) -> list[str]:
        return [str(self.program / "bin/phoenix"), "serve"]

    def environment(self) -> dict[str, str]:
        return {
            "PHOENIX_WORKING_DIR": str(self.directory),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(self.port),
            "PHOENIX_GRPC_PORT": str(free_port()),
            # Nothing of a benchmark's is sent to anybody.
            "PHOENIX_TELEMETRY_ENABLED": "false",
            "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        }

    def spans_of(self, client: Client, traces: list[str]) -> Iterable[str]:
        asked = "".join(f"&trace_id={trace}" for trace in traces)
        answer = client.get(f"/v1/projects/default/spans?limit=1000{asked}")
        # The project is made with its first span.
        spans = [] if answer.status == 404 else answer.json()["data"]
        return [span["context"]["span_id"] for span in spans if span["attributes"].get("output.value")]


class MLflow(Peer):
    name = "MLflow"
    package = "mlflow"
    # mlflow/server/otel_api.py (answers after log_spans), mlflow/store/db/utils.py (commits when the session ends; sets
    # neither journal_mode nor synchronous, so SQLite's own defaults hold: a rollback journal, and FULL).
    durability = "SQLite commit before the answer, rollback journal, synchronous=FULL"
    ready_path = "/health"
    experiment = ""

    def command(self) -> list[str]:
        store = f"sqlite:///{self.directory / 'mlflow.db'}"
        listen = ["--host", "127.0.0.1", "--port", str(self.port)]
        return [str(self.program / "bin/mlflow"), "server", "--backend-store-uri", store, *listen]

    def environment(self) -> dict[str, str]:
        # Its worker starts `python` by name.
        path = f"{self.program / 'bin'}:{os.environ['PATH']}"
        return {"PATH": path, "MLFLOW_DISABLE_TELEMETRY": "true"}

    def prepare(self) -> None:
        made = self.client().post("/api/2.0/mlflow/experiments/create", {"name": "bench"}, {})
        self.experiment = made.json()["experiment_id"]

    def headers(self) -> dict[str, str]:
        return super().headers() | {"x-mlflow-experiment-id": self.experiment}

    def kill(self) -> None:
        # Its job queue is in memory below /dev/shm, and would stay there.
        scratch = {value for pid in self.tree() if (value := environment_of(pid).get("_MLFLOW_HUEY_STORAGE_PATH"))}
        super().kill()
        for path in scratch:
            shutil.rmtree(path, ignore_errors=True)

    def spans_of(self, client: Client, traces: list[str]) -> Iterable[str]:
        asked = "&".join(f"trace_ids=tr-{trace}" for trace in traces)
        answer = client.get(f"/api/3.0/mlflow/traces/batchGet?{asked}").json()
        spans = itertools.chain.from_iterable(trace["spans"] for trace in answer.get("traces", []))
        full = (span for span in spans if any(said["key"] == "mlflow.spanOutputs" for said in span["attributes"]))
        return [b64decode(span["span_id"]).hex() for span in full]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def stat(pid: int) -> list[str] | None:
    """The fields behind the name, which may hold blanks: state, parent, group, session and so on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def environment_of(pid: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)
