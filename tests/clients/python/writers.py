"""Many writers of one row at the same time: four processes, of several connections each, and nothing that any of them wrote is lost."""

import json
import os
import subprocess
import sys
import threading

import braintrust
import requests
from reading import HEADERS, URL, fetch, same

PROCESSES = 4
# Beside the SDK's own, which has the number 0.
CONNECTIONS = 3
MERGES = 15
ROWS = {"project_logs": "hot-span", "experiment": "hot-case", "dataset": "hot-record"}
# Where each process goes, where the test has more than one address.
URLS = os.environ.get("ASSAY_URLS", URL).split(",")


def change(writer, i):
    """What a writer merges into each of the rows, in its turn i."""
    fields = {"tags": [f"{writer}-{i}"], "metadata": {"contended": f"{writer}-{i}", "turns": {writer: i}, "all": {f"{writer}-{i}": {"i": i}}}}
    return {**fields, "expected": {writer: {"last": i}}}


def of_the_sdk(writer, dataset, experiment, span):
    for i in range(MERGES):
        dataset.update(id=ROWS["dataset"], **change(writer, i))
        experiment.update_span(id=ROWS["experiment"], scores={writer: i / MERGES}, **change(writer, i))
        braintrust.update_span(span, scores={writer: i / MERGES}, metrics={writer: i}, **change(writer, i))
        braintrust.flush()


def of_a_connection(writer, ids, failures):
    try:
        with requests.Session() as session:
            session.headers.update(HEADERS)
            for i in range(MERGES):
                for family, row in ROWS.items():
                    event = {"id": row, "_is_merge": True, **change(writer, i)}
                    if family != "dataset":
                        event["scores"] = {writer: i / MERGES}
                    answer = session.post(f"{URL}/v1/{family}/{ids[family]}/insert", json={"events": [event]}, timeout=60)
                    assert answer.status_code == 200, answer.text
                    same("its id", answer.json()["row_ids"], [row])
                if i % 5 == 4:
                    # What it was told is written is there, whichever node it asks.
                    found = session.post(f"{URL}/v1/project_logs/{ids['project_logs']}/fetch", json={"limit": 10}, timeout=60).json()
                    [row] = [row for row in found["events"] if row["id"] == ROWS["project_logs"]]
                    same("its own turn", row["metadata"]["turns"][writer], i)
                    same("its own tags", {f"{writer}-{j}" for j in range(i + 1)} - set(row["tags"]), set())
    except Exception as error:
        failures.append(f"{writer}: {error!r}")


if sys.argv[1] == "write":
    process, project, ids = sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
    experiment = braintrust.init(project=project, experiment="e", update=True, set_current=False)
    dataset = braintrust.init_dataset(dataset_id=ids["dataset"])
    same("the same ones", (experiment.id, dataset.id), (ids["experiment"], ids["dataset"]))
    failures = []
    threads = [threading.Thread(target=of_a_connection, args=(f"{process}-{number}", ids, failures)) for number in range(1, CONNECTIONS + 1)]
    for thread in threads:
        thread.start()
    of_the_sdk(f"{process}-0", dataset, experiment, ids["span"])
    for thread in threads:
        thread.join()
    assert not failures, failures
    sys.exit()

project = f"python-writers-{sys.argv[1]}"
logger = braintrust.init_logger(project=project)
experiment = braintrust.init(project=project, experiment="e", set_current=False)
dataset = braintrust.init_dataset(project=project, name="d")
span = logger.start_span(name="hot", id=ROWS["project_logs"], input="of the first", tags=["first"])
experiment.log(id=ROWS["experiment"], input="of the first", output="o", scores={}, tags=["first"])
dataset.insert(id=ROWS["dataset"], input="of the first", tags=["first"])
braintrust.flush()
ids = {"project_logs": logger.project.id, "experiment": experiment.id, "dataset": dataset.id, "span": span.export()}
begun = {family: fetch(family, ids[family])[row] for family, row in ROWS.items()}

processes = []
for process in range(PROCESSES):
    url = URLS[process % len(URLS)]
    environment = {**os.environ, "BRAINTRUST_APP_URL": url, "BRAINTRUST_API_URL": url}
    command = [sys.executable, __file__, "write", str(process), project, json.dumps(ids)]
    processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
said = [process.communicate(timeout=300)[0] for process in processes]
print(*said)
same("they all end well", [process.returncode for process in processes], [0] * PROCESSES)
span.log(output="of the last")
span.end()
braintrust.flush()

writers = [f"{process}-{number}" for process in range(PROCESSES) for number in range(CONNECTIONS + 1)]
last = {writer: MERGES - 1 for writer in writers}
for family, name in ROWS.items():
    rows = fetch(family, ids[family])
    same("rows", set(rows), {name})
    row = rows[name]
    same("what was there", row["input"], "of the first")
    same(f"{family}: its first time", row["created"], begun[family]["created"])
    same(f"{family}: each one's last turn", row["metadata"]["turns"], last)
    same(f"{family}: every change", row["metadata"]["all"], {f"{writer}-{i}": {"i": i} for writer in writers for i in range(MERGES)})
    same(f"{family}: expected", row["expected"], {writer: {"last": MERGES - 1} for writer in writers})
    same(f"{family}: tags", sorted(row["tags"]), sorted(["first", *(f"{writer}-{i}" for writer in writers for i in range(MERGES))]))
    same(f"{family}: the first tag", row["tags"][0], "first")
    # The last of one writer, whoever that is.
    assert row["metadata"]["contended"] in {f"{writer}-{MERGES - 1}" for writer in writers}, row["metadata"]["contended"]
    if family != "dataset":
        same(f"{family}: scores", row["scores"], {writer: (MERGES - 1) / MERGES for writer in writers})
row = fetch("project_logs", ids["project_logs"])[ROWS["project_logs"]]
same("the span", (row["output"], row["span_id"], row["root_span_id"], row["span_attributes"]["name"]), ("of the last", span.span_id, span.root_span_id, "hot"))
same("its metrics", {key: value for key, value in row["metrics"].items() if "-" in key}, {f"{process}-0": MERGES - 1 for process in range(PROCESSES)})
print("writers: ok")
