"""The SDK while it sends: killed, or cut off at random. What it believes sent is there once, as it was.

ASSAY_ROUNDS rounds, each a process of its own that logs, merges and flushes; ASSAY_SEED makes them again.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cutting import ANSWER, BEFORE, UNANSWERED, WITHIN, Cutting
from reading import URL, ask, fetch, same

FLUSHES = 8
SPANS_AT_ONCE = 25
# Of requests that write; each is tried again by the SDK, which gives up at some time.
CUT_SHARES = [0.1, 0.35]
# They wait, mostly: the SDK for longer each time that it is cut off.
AT_ONCE = 5
# Larger than what is taken in one request.
LARGE = 7 << 20
SETTLED_WITHIN = 10


def client(project, seed):
    """Logs, and says after each flush what it believes sent."""
    import braintrust

    dice = random.Random(f"cut {seed}")
    logger = braintrust.init_logger(project=project)
    spans = {}
    for flush in range(FLUSHES):
        for number in range(SPANS_AT_ONCE):
            name = f"{flush}-{number}"
            span = logger.start_span(name=name, id=name, input={"n": name}, metadata={"first": flush})
            if flush == FLUSHES // 2 and number == 0:
                span.log(output={"large": "x" * LARGE})
            spans[name] = (span, {"first": flush})
        # Rows that were sent before are merged into.
        for name in dice.sample(sorted(spans), SPANS_AT_ONCE):
            span, metadata = spans[name]
            metadata[f"m{flush}"] = flush
            span.log(metadata={f"m{flush}": flush})
        logger.flush()
        print(json.dumps({name: metadata for name, (_, metadata) in spans.items()}), flush=True)


def given_up(folder):
    """Rows that the SDK says it did not get through: what it wrote into the folder it was given."""
    names = set()
    for file in Path(folder).rglob("*"):
        if file.is_file():
            said = json.loads(file.read_text())
            names |= {row["id"] for row in said.get("rows", said.get("data", {}).get("rows", []))}
    return names


def one(seed, run):
    dice = random.Random(f"cut {seed}")
    kind = dice.choice(["killed", "cut", "cut"])
    begun, share = dice.random(), dice.choice(CUT_SHARES)

    def decide(line, _):
        if kind != "cut" or not line.startswith(("POST /logs3", "PUT ")) or dice.random() >= share:
            return None
        return dice.choice([BEFORE, WITHIN, UNANSWERED, ANSWER])

    way = Cutting(URL, decide)
    project = f"cut-{run}-{seed}"
    with tempfile.TemporaryDirectory() as folder:
        told = {
            **os.environ, "BRAINTRUST_APP_URL": way.url, "BRAINTRUST_API_URL": way.url,
            "BRAINTRUST_FAILED_PUBLISH_PAYLOADS_DIR": folder,
        }
        words = [sys.executable, __file__, "client", project, str(seed)]
        child = subprocess.Popen(words, env=told, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        said = [child.stdout.readline()]
        assert said[0], f"seed {seed}: the client ended before it had sent anything: {child.wait()}"
        if kind == "killed":
            time.sleep(begun * 0.6)
            child.kill()
        said += child.stdout.readlines()
        ended = child.wait()
        assert kind == "killed" or ended == 0, f"seed {seed}: the client ended with {ended}"
        # Of a line that was cut by the kill nothing is known.
        believed = json.loads(next(line for line in reversed(said) if line.endswith("\n")))
        lost = given_up(folder)
    object_id = ask("GET", f"/v1/project?project_name={project}")["objects"][0]["id"]
    # What the client had sent when it was killed may still be on its way.
    for _ in range(SETTLED_WITHIN * 10):
        rows = fetch("project_logs", object_id)
        found = ask("POST", "/btql", query=f"SELECT count(1) AS n FROM project_logs('{object_id}')")["data"][0]["n"]
        if found == len(rows):
            break
        time.sleep(0.1)
    same(f"seed {seed}: each once", found, len(rows))
    for name, metadata in believed.items():
        if name in lost:
            continue
        row = rows.get(name)
        assert row, f"seed {seed}, {kind}: {name} is not there"
        same(f"seed {seed}, {kind}: {name}", row["input"], {"n": name})
        has = {key: row["metadata"].get(key) for key in metadata}
        same(f"seed {seed}, {kind}: {name}'s merges", has, metadata)
        if name == f"{FLUSHES // 2}-0":
            same(f"seed {seed}, {kind}: the large one", len(row["output"]["large"]), LARGE)
    return kind, len(believed), len(lost), way.cuts


if sys.argv[1] == "client":
    client(sys.argv[2], int(sys.argv[3]))
else:
    rounds, seed = int(os.environ.get("ASSAY_ROUNDS", "40")), int(os.environ.get("ASSAY_SEED", "1"))
    kinds, rows, cuts, lost = {}, 0, {}, 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        told = list(pool.map(lambda number: one(seed + number, sys.argv[1]), range(rounds)))
    for kind, believed, given, cut in told:
        kinds[kind] = kinds.get(kind, 0) + 1
        rows, lost = rows + believed, lost + given
        for place, _ in cut:
            cuts[place] = cuts.get(place, 0) + 1
    assert len(kinds) == 2 or rounds < 10, kinds
    print(f"cut: ok, {rounds} rounds {kinds}, {rows} rows believed sent, {lost} given up; cut {json.dumps(cuts)}")
