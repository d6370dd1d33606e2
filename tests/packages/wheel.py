"""Runs on a fresh machine as an ordinary user: installs wheels, starts the server, and sends a trace.

Usage: wheel.py assay|phoenix WHEELS CLIENTS. WHEELS has the wheels of the server, and CLIENTS those of SDKs. Prints the
seconds from `pip install` to the user's own trace in the answers of the server.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

from traces import Assay, exported, request, until

START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
SPAN = "own trace"
PHOENIX = "http://127.0.0.1:6006"


def run(*words, **options):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, **options)


class Server:
    """A server in the foreground of a terminal: its output is read as it comes."""

    def __init__(self, *words):
        self.process = subprocess.Popen(
            [str(word) for word in words], stdout=subprocess.PIPE, stderr=open("log", "wb"), text=True
        )
        self.lines = []
        threading.Thread(target=lambda: [self.lines.append(line) for line in self.process.stdout], daemon=True).start()

    def said(self, pattern):
        assert self.process.poll() is None, "the server ended: " + pathlib.Path("log").read_text()[-2000:]
        return next((found for line in list(self.lines) if (found := re.search(pattern, line))), None)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(STOP_SECONDS_MAX) == 0, self.process.returncode


def install(wheels, name):
    venv = pathlib.Path("venv").absolute()
    run("python3", "-m", "venv", venv)
    begun = time.monotonic()
    run(
        venv / "bin/pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--find-links",
        wheels,
        name,
    )
    return venv, begun


def report(name, begun, installed, ready):
    """Prints the seconds from the beginning to now, and to the steps between."""
    steps = {"installed": installed, "ready": ready, "trace": time.monotonic()}
    print(json.dumps({"server": name} | {step: round(at - begun, 1) for step, at in steps.items()}), flush=True)


def assay(wheels, clients):
    venv, begun = install(wheels, "assay")
    installed = time.monotonic()
    server = Server(venv / "bin/assay", "serve")
    until(START_SECONDS_MAX, "the line that says where it serves", lambda: server.said("^Assay is ready at "))
    ready = time.monotonic()
    node = Assay("http://127.0.0.1:8000", server.said(r"API key \(shown once\): (\S+)")[1])
    node.export(SPAN)
    until(START_SECONDS_MAX, "the trace in an answer", lambda: SPAN in node.names())
    report("assay", begun, installed, ready)
    console(node)
    sdks(venv, clients, node)
    server.stop()


def console(node):
    """Reaches the console with its scripts, and signs in with the key."""
    page = request(f"{node.url}/app").decode()
    assets = re.findall(r'(?:src|href)="(/app/[^"]+\.(?:js|css))"', page)
    assert assets, f"the console names no scripts: {page[:400]}"
    for asset in assets:
        assert request(node.url + asset), asset
    # As the page of the console signs in.
    session = json.loads(request(f"{node.url}/console/session", b"", node.headers | {"x-assay-console": "1"}))
    assert session, "no session"
    print(f"console: {len(assets)} files, a session with {', '.join(sorted(session))}", flush=True)


def sdks(venv, clients, node):
    """Logs by the Braintrust SDK and by the exporter of OpenTelemetry, both from their wheels."""
    run(
        venv / "bin/pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--no-deps",
        *sorted(pathlib.Path(clients).glob("*.whl")),
    )
    key = node.headers["Authorization"].removeprefix("Bearer ")
    environment = os.environ | {
        "BRAINTRUST_API_KEY": key,
        "BRAINTRUST_APP_URL": node.url,
        "BRAINTRUST_API_URL": node.url,
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"{node.url}/otel",
        "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{key},x-bt-parent=project_name:install",
    }
    folder = pathlib.Path(__file__).parent
    for name in ["braintrust", "opentelemetry"]:
        run(venv / "bin/python", folder / "logged.py", name, env=environment)
        until(START_SECONDS_MAX, f"the trace of {name}", lambda name=name: f"by {name}" in node.names())
    print(f"traces: {sorted(node.names())}", flush=True)


def phoenix(wheels, _clients):
    venv, begun = install(wheels, "arize-phoenix")
    installed = time.monotonic()
    server = Server(venv / "bin/phoenix", "serve")
    headers = {"Content-Type": "application/x-protobuf"}

    def sent():
        server.said("^$")
        request(f"{PHOENIX}/v1/traces", exported(SPAN), headers)
        return True

    def read():
        return SPAN.encode() in request(f"{PHOENIX}/v1/projects/default/spans")

    until(START_SECONDS_MAX, "an accepted trace of Phoenix", sent)
    ready = time.monotonic()
    until(START_SECONDS_MAX, "the trace in an answer of Phoenix", read)
    report("phoenix", begun, installed, ready)
    server.process.kill()


def main():
    name, wheels, clients = sys.argv[1:]
    {"assay": assay, "phoenix": phoenix}[name](wheels, clients)


main()
