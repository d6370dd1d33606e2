"""Assay beside Arize Phoenix and MLflow: the same spans, sent to each, until the last one can be read.

Each of the others is installed into an environment of its own, and the bench runs in one of them:

    python3.11 -m venv ENVIRONMENTS/phoenix
    ENVIRONMENTS/phoenix/bin/pip install --no-deps -r tests/bench/peers/phoenix.lock
    python3.11 -m venv ENVIRONMENTS/mlflow
    ENVIRONMENTS/mlflow/bin/pip install --no-deps -r tests/bench/peers/mlflow.lock
    cargo build --release -p assay
    ENVIRONMENTS/phoenix/bin/python -B tests/bench/peers/compare.py --assay target/release/assay \\
        --phoenix ENVIRONMENTS/phoenix --mlflow ENVIRONMENTS/mlflow --dir /on/the/disk/to/measure --json peers.json

For each: short runs with 1, 4 and 16 connections say with how many it does best; a long one with these is measured;
on another empty directory it is killed with SIGKILL under that load, started again, and asked for what it had
acknowledged. It takes half an hour; a product that is not named is left as it stands in the JSON file, so each can have
a quiet time of its own. Progress goes to stderr, the report to stdout; `report.txt` is the last one of a quiet machine.
What is written into the directory is removed in the end, but for what the servers said.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from load import SPANS_PER_REQUEST, Load
from measure import STILL_SECONDS_AFTER_KILL, WARM_REQUESTS, WARM_SPANS, Watch, count, drive, warm
from servers import Assay, MLflow, Phoenix, Server

PRODUCTS: tuple[type[Server], ...] = (Assay, Phoenix, MLflow)
CONNECTIONS = (1, 4, 16)
GOAL = 10
MIB = 1 << 20
READABLE = "accepted and readable, spans/s"
# Of the processors, more than this in the hands of others spoils a run.
OTHERS_MAX = 0.2

Results = dict[str, dict[str, Any]]

REPORT = """\
Assay beside Arize Phoenix and MLflow: what `compare.py` of this folder found.

{machine}, Linux {kernel}, Python {python}; client and servers on one machine.

{table}

{verdict}

What an answer to a write promises:
{durability}

How it was measured. Traces of six to ten spans, {row:.0f} bytes a span as a row of Assay and {otlp:.0f} as OTLP, text
that deflate makes {smaller:.1f} times smaller; {spans} spans a request, the same ones for all. Assay, which has no OTLP
yet, takes them as JSON through its own insert; the others take OTLP as protobuf over HTTP at /v1/traces, with the
attributes of OpenInference, which both read. Bodies are made beforehand; a connection sends its next one when the one
before is answered. Each server first got {warm} requests that do not count. Trials of {trial:.0f} s with 1, 4 and 16
connections said with how many each does best (one that could not be read any more afterwards counts as none), then one
run of {seconds:.0f} s was measured. All three run as their manuals say, on an empty directory, with nothing set but
addresses, directories, Assay's first key, and that nothing is sent home.

- Accepted and readable: spans acknowledged, by the time from the first request until the last of them could be read
  through the product's own API. Every id is looked for in what that gives out, and those not found are counted.
- Memory: looked at every two seconds while loading and reading; the sum over all processes, and with shared pages once.
- Disk: blocks given to the directory once the server is at rest; content is the JSON row.
- kill -9: of all processes of the server after {kill:.0f} s of load, on a directory of its own. What had been handed
  to the kernel survives that, and would not survive a power cut unless it was synced: that is what the promises say.
- The promises were looked up in each one's source (see `servers.py`), and the syncs counted with strace: about one a
  request (Assay), none (Phoenix), four a request (MLflow).
- Phoenix and MLflow also reckon what the tokens cost; Assay keeps the counts only.
"""


@dataclass
class Bench:
    """A product, and where its servers are started: each run on an empty directory."""

    product: type[Server]
    program: Path
    load: Load
    options: argparse.Namespace

    def measured(self) -> dict[str, Any]:
        best = max(CONNECTIONS, key=self.rate)
        return {
            "measured": time.strftime("%Y-%m-%d %H:%M"),
            "version": self.product(self.program, self.options.dir).version(),
            "connections": best,
            **self.loaded(best),
            **self.killed(best),
        }

    def rate(self, connections: int) -> float:
        """A server that cannot be read any more after so many connections does not do best with them."""
        with self.server(f"{connections}-connections") as server:
            driven = drive(server, self.load, connections, self.options.trial_seconds)
            try:
                rate = driven.spans() / (count(server, self.load, driven).at - driven.began)
            except (OSError, HTTPException) as error:
                self.say(f"{connections} connections: {driven.spans()} spans taken, then {error!r} for every reading")
                return 0.0
        self.say(f"{connections} connections: {rate:.0f} spans/s")
        return rate

    def loaded(self, connections: int) -> dict[str, Any]:
        with self.server("load") as server:
            with Watch(server) as watch:
                driven = drive(server, self.load, connections, self.options.seconds)
                counted = count(server, self.load, driven)
            server.quiet()
            disk = server.disk_bytes()
        spans = driven.spans() - counted.missing
        rate = spans / (counted.at - driven.began)
        self.say(f"{rate:.0f} spans/s")
        return {
            READABLE: rate,
            "spans acknowledged": driven.spans(),
            "of these never readable": counted.missing,
            "acknowledged, spans/s": driven.spans() / (driven.last_answer - driven.began),
            "last one readable after the last answer, s": counted.at - driven.last_answer,
            "acknowledgement p50, ms": driven.milliseconds(0.5),
            "acknowledgement p99, ms": driven.milliseconds(0.99),
            "refused and sent again": len(driven.refused),
            "failed": dict(Counter(driven.failed)),
            "memory, peak RSS of all processes, MiB": watch.rss / MIB,
            "memory, shared pages once, MiB": watch.pss / MIB,
            "disk, bytes/span": disk / (spans + WARM_SPANS),
            "disk, bytes/byte of content": disk / (spans + WARM_SPANS) / self.load.row_bytes,
            "processors used: server": driven.server,
            "processors used: client": driven.client,
            "processors used: others": driven.others,
        }

    def killed(self, connections: int) -> dict[str, Any]:
        with self.server("kill") as server:
            driven = drive(server, self.load, connections, self.options.kill_after_seconds, kill=True)
            ready = server.start()
            missing = count(server, self.load, driven, STILL_SECONDS_AFTER_KILL).missing
        self.say(f"{missing} of {driven.spans()} acknowledged spans are gone after kill -9")
        return {
            "kill -9: spans acknowledged before": driven.spans(),
            "kill -9: of these gone": missing,
            "kill -9: ready again after, s": ready,
        }

    @contextmanager
    def server(self, run: str) -> Iterator[Server]:
        server = self.product(self.program, self.options.dir / f"{self.product.name.lower()}-{run}")
        try:
            server.start()
            server.prepare()
            warm(server, self.load)
            yield server
        finally:
            server.kill()
            shutil.rmtree(server.directory)

    def say(self, what: str) -> None:
        print(f"{self.product.name}: {what}", file=sys.stderr, flush=True)


def report(results: Results, load: Load, options: argparse.Namespace) -> str:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return REPORT.format(
        machine=f"{os.cpu_count()} cores, {memory / (1 << 30):.0f} GiB",
        kernel=os.uname().release.split("-")[0],
        python=sys.version.split()[0],
        table=table(results),
        verdict=verdict(results),
        durability="\n".join(f"- {product.name}: {product.durability}." for product in PRODUCTS),
        warm=len(WARM_REQUESTS),
        row=load.row_bytes,
        otlp=load.otlp_bytes,
        smaller=load.smaller,
        spans=SPANS_PER_REQUEST,
        trial=options.trial_seconds,
        seconds=options.seconds,
        kill=options.kill_after_seconds,
    )


def table(results: Results) -> str:
    """A column for each product."""
    rows = [["", *results]]
    for figure in next(iter(results.values())):
        rows.append([figure, *(shown(result[figure]) for result in results.values())])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return "\n".join("  ".join(row).rstrip() for row in padded)


def shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} times {name}" for name, count in value.items()) or "none"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def verdict(results: Results) -> str:
    """Against the better of the others; and whether the machine was quiet enough to say so."""
    said = []
    rates = {name: result[READABLE] for name, result in results.items()}
    ours = rates.pop(Assay.name, None)
    if ours and rates:
        better = max(rates, key=lambda name: rates[name])
        times = ours / rates[better]
        missed = "" if times >= GOAL else ": MISSED"
        said.append(f"Assay / {better}, the better of the others: {times:.1f}; wanted: at least {GOAL}{missed}")
    if any(result["processors used: others"] > OTHERS_MAX for result in results.values()):
        said.append("NOT QUIET: others used the processors meanwhile, these figures are not to be kept.")
    return "\n".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for product in PRODUCTS:
        what = "the program" if product is Assay else "its environment"
        parser.add_argument(f"--{product.name.lower()}", type=Path, help=f"{what}; left out without it")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True, help="the figures; those of products left out stay there")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--trial-seconds", type=float, default=15)
    parser.add_argument("--kill-after-seconds", type=float, default=15)
    options = parser.parse_args()
    options.dir = options.dir.resolve()
    # Ended from outside it still ends the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    load = Load()
    results: Results = json.loads(options.json.read_text()) if options.json.exists() else {}
    for product in PRODUCTS:
        if program := getattr(options, product.name.lower()):
            results[product.name] = Bench(product, program.resolve(), load, options).measured()
            options.json.write_text(json.dumps(results, indent=2) + "\n")
    if not results:
        parser.error("name at least one of the products")
    in_order = {product.name: results[product.name] for product in PRODUCTS if product.name in results}
    print(report(in_order, load, options), end="")


if __name__ == "__main__":
    main()
