"""A trace that goes on in other processes, by exported spans of either form; feedback late and again; writers of one row."""

import json
import os
import subprocess
import sys
import threading

import braintrust
import requests
from reading import HEADERS, URL, comments, fetch, same

if sys.argv[1] == "below":
    # Another process, which knows nothing but the exported span.
    with braintrust.start_span(name="below", parent=sys.argv[2]) as span:
        span.log(input="there")
        with span.start_span(name="deeper") as deeper:
            deeper.log(output="deep")
    braintrust.flush()
    sys.exit()

project = f"python-tracing-{sys.argv[1]}"
logger = braintrust.init_logger(project=project)
experiment = braintrust.init(project=project, experiment="one")


def below(exported, legacy):
    environment = {**os.environ, **({"BRAINTRUST_LEGACY_IDS": "1"} if legacy else {})}
    subprocess.run([sys.executable, __file__, "below", exported], env=environment, check=True, timeout=60)


with logger.start_span(name="root") as root:
    fourth = root.export()
    below(fourth, legacy=False)
with experiment.start_span(name="root") as of_experiment:
    below(of_experiment.export(), legacy=False)
braintrust.flush()
experiment.flush()
environment = {**os.environ, "BRAINTRUST_LEGACY_IDS": "1"}
script = f"import braintrust\nlogger = braintrust.init_logger(project={project!r})\nwith logger.start_span(name='root of before') as s:\n    print(s.export())\nlogger.flush()\n"
third = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True, timeout=60).stdout.split()[-1]
assert third.startswith("Aw") and fourth.startswith("BA"), (third, fourth)
below(third, legacy=True)

rows = fetch("project_logs", logger.project.id)
for root_name in ("root", "root of before"):
    top = next(row for row in rows.values() if row["span_attributes"]["name"] == root_name)
    trace = {row["span_attributes"]["name"]: row for row in rows.values() if row["root_span_id"] == top["root_span_id"]}
    same(f"the trace of {root_name}", set(trace), {root_name, "below", "deeper"})
    same("below", trace["below"]["span_parents"], [top["span_id"]])
    same("deeper", (trace["deeper"]["span_parents"], trace["deeper"]["output"]), ([trace["below"]["span_id"]], "deep"))
names = {row["span_attributes"]["name"] for row in fetch("experiment", experiment.id).values()}
same("of the experiment", names, {"root", "below", "deeper"})

# Ended elsewhere, and told of late.
braintrust.update_span(exported=fourth, output="late", metadata={"late": True})
braintrust.flush()
logger.log_feedback(id=root.id, scores={"human": 1}, comment="late", metadata={"by": "me"})
logger.flush()
row = fetch("project_logs", logger.project.id)[root.id]
same("late", (row["output"], row["metadata"], row["scores"], comments(row)), ("late", {"late": True}, {"human": 1}, ["late"]))
# A request that comes a second time, as when its answer was lost.
comment = {"id": f"comment-{sys.argv[1]}", "origin": {"id": root.id}, "comment": {"text": "again"}, "project_id": logger.project.id, "log_id": "g"}
for _ in range(2):
    answer = requests.post(f"{URL}/logs3", headers=HEADERS, data=json.dumps({"rows": [comment], "api_version": 2}), timeout=60)
    same("replayed", answer.status_code, 200)
same("comments", comments(fetch("project_logs", logger.project.id)[root.id]), ["again", "late"])


# Many write parts of one row, each over connections of its own.
def write(number):
    for step in range(10):
        row = {"id": "shared", "_is_merge": True, "metadata": {f"w{number}": {f"s{step}": step}}, "tags": [f"t{number}"], "project_id": logger.project.id, "log_id": "g"}
        answer = requests.post(f"{URL}/logs3", headers=HEADERS, data=json.dumps({"rows": [row], "api_version": 2}), timeout=60)
        assert answer.status_code == 200, answer.text


threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
row = fetch("project_logs", logger.project.id)["shared"]
same("merged", row["metadata"], {f"w{number}": {f"s{step}": step for step in range(10)} for number in range(8)})
same("tags", sorted(row["tags"]), [f"t{number}" for number in range(8)])
print("tracing: ok")
