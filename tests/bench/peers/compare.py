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
acknowledged. Progress goes to stderr, the table to stdout. What is written into the directory is removed in the end, but for what the servers said.
"""

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from load import Load
from measure import STILL_SECONDS_AFTER_KILL, Watch, count, drive
from servers import Assay, MLflow, Phoenix, Server

CONNECTIONS = (1, 4, 16)
GOAL = 10
MIB = 1 << 20


@dataclass
class Bench:
    """A product, and where its servers are started: each run on an empty directory."""

    product: type[Server]
    program: Path
    load: Load
    directory: Path
    options: argparse.Namespace

    def measured(self) -> dict[str, object]:
        best = max(CONNECTIONS, key=self.rate)
        return {
            "version": self.product(self.program, self.directory).version(),
            "durability": self.product.durability,
            "connections": best,
            **self.loaded(best),
            **self.killed(best),
        }

    def rate(self, connections: int) -> float:
        server = self.started(f"{connections}-connections")
        driven = drive(server, self.load, connections, self.options.trial_seconds)
        rate = driven.spans() / (count(server, self.load, driven).at - driven.began)
        self.ended(server, f"{connections} connections: {rate:.0f} spans/s")
        return rate

    def loaded(self, connections: int) -> dict[str, object]:
        server = self.started("load")
        with Watch(server) as watch:
            driven = drive(server, self.load, connections, self.options.seconds)
            counted = count(server, self.load, driven)
        server.quiet()
        disk = server.disk_bytes()
        spans = driven.spans() - counted.missing
        rate = spans / (counted.at - driven.began)
        self.ended(server, f"{rate:.0f} spans/s")
        return {
            "spans acknowledged": driven.spans(),
            "of these never readable": counted.missing,
            "accepted and readable, spans/s": rate,
            "acknowledged, spans/s": driven.spans() / (driven.last_answer - driven.began),
            "last one readable after its answer, s": counted.at - driven.last_answer,
            "acknowledgement p50, ms": driven.milliseconds(0.5),
            "acknowledgement p99, ms": driven.milliseconds(0.99),
            "refused and sent again": len(driven.refused),
            "failed": dict(Counter(driven.failed)),
            "memory, peak RSS of all processes, MiB": watch.rss / MIB,
            "memory, shared pages once, MiB": watch.pss / MIB,
            "disk at rest, bytes/span": disk / spans,
            "disk at rest, bytes/byte of content": disk / spans / self.load.row_bytes,
            "client, processors": driven.client_cpu_share,
        }

    def killed(self, connections: int) -> dict[str, object]:
        server = self.started("kill")
        driven = drive(server, self.load, connections, self.options.kill_after_seconds, kill=True)
        ready = server.start()
        missing = count(server, self.load, driven, STILL_SECONDS_AFTER_KILL).missing
        self.ended(server, f"{missing} of {driven.spans()} acknowledged spans are gone after kill -9")
        return {
            "kill -9: spans acknowledged before": driven.spans(),
            "kill -9: of these gone": missing,
            "kill -9: ready again after, s": ready,
        }

    def started(self, run: str) -> Server:
        server = self.product(self.program, self.directory / f"{self.product.name.lower()}-{run}")
        server.start()
        server.prepare()
        return server

    def ended(self, server: Server, said: str) -> None:
        server.kill()
        shutil.rmtree(server.directory)
        print(f"{self.product.name}: {said}", file=sys.stderr, flush=True)


def table(results: dict[str, dict[str, object]]) -> str:
    """A column for each product."""
    rows = [["", *results]]
    for figure in next(iter(results.values())):
        rows.append([figure, *(shown(result[figure]) for result in results.values())])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} times {name}" for name, count in value.items()) or "none"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def ratio(results: dict[str, dict[str, object]]) -> str:
    rates = {name: float(str(result["accepted and readable, spans/s"])) for name, result in results.items()}
    ours = rates.pop(Assay.name, None)
    if not ours or not rates:
        return ""
    better = max(rates, key=lambda name: rates[name])
    times = ours / rates[better]
    said = "" if times >= GOAL else ": MISSED"
    return f"Assay / {better}, the better of the others: {times:.1f}; wanted: at least {GOAL}{said}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for product in (Assay, Phoenix, MLflow):
        what = "the program" if product is Assay else "its environment"
        parser.add_argument(f"--{product.name.lower()}", type=Path, help=f"{what}; left out without it")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--trial-seconds", type=float, default=15)
    parser.add_argument("--kill-after-seconds", type=float, default=15)
    options = parser.parse_args()
    load = Load()
    span = {"bytes as a row": load.row_bytes, "bytes as OTLP": load.otlp_bytes, "times smaller deflated": load.smaller}
    print("a span: " + ", ".join(f"{shown(value)} {name}" for name, value in span.items()), file=sys.stderr)
    results = {}
    for product in (Assay, Phoenix, MLflow):
        if program := getattr(options, product.name.lower()):
            bench = Bench(product, program.resolve(), load, options.dir.resolve(), options)
            results[product.name] = bench.measured()
    text = json.dumps({"date": time.strftime("%Y-%m-%d"), "span": span, "results": results}, indent=2)
    if options.json:
        options.json.write_text(text + "\n")
    print(table(results), ratio(results), sep="\n")


if __name__ == "__main__":
    main()
