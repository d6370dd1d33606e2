"""Feedback and comments: on spans that nobody has sent yet, in one flush with them, long behind them, and all of it sent again."""

import os
import pathlib
import sys

# The SDK keeps what it sends there.
payloads = pathlib.Path("payloads")
payloads.mkdir()
os.environ["BRAINTRUST_ALL_PUBLISH_PAYLOADS_DIR"] = str(payloads)

import braintrust
import requests
from reading import HEADERS, URL, ask, comments, fetch, same

project = f"python-feedback-{sys.argv[1]}"
logger = braintrust.init_logger(project=project)
sent = []


def flush():
    """In the order of flushes: what went out in this one."""
    logger.flush()
    known = [path for flushed in sent for path in flushed]
    # payload_<when, as a number>_<anything>.json
    when = lambda path: float(path.name.split("_")[1])
    sent.append(sorted((path for path in payloads.iterdir() if path not in known), key=when))


def span(name, **event):
    with logger.start_span(name=name, id=f"{project}-{name}", **event) as made:
        made.log(output=f"of {name}", scores={"own": 1}, tags=["own"])


def feedback(name, **given):
    logger.log_feedback(id=f"{project}-{name}", **given)


# Early: the span comes behind it, and in a flush of its own. What replaces a row whole replaces scores too, and comments stay.
feedback("early", comment="early one", metadata={"who": "ann"}, source="app")
feedback("early", comment="early two", scores={"human": 0.5}, expected="lost", tags=["lost"])
flush()
span("early", input="i")
flush()

# With it: one row carries both.
span("with", input="i", metadata={"own": True})
feedback("with", scores={"human": 0.25, "own": 0}, expected="e", tags=["human"], comment="with it", metadata={"who": "bob"}, source="external")
flush()

# Late: again and again, each in a flush of its own.
span("late", input="i", metadata={"own": True})
flush()
for i in range(4):
    feedback("late", scores={"human": i / 4, f"human-{i}": 1}, expected={"round": i, f"round-{i}": True}, tags=[f"round-{i}"], comment=f"late {i}", metadata={"round": i}, source="api")
    flush()
feedback("late", comment="only a comment")
flush()
braintrust.update_span(logger.start_span(name="other", id=f"{project}-other").export(), output="updated")
feedback("other", comment="ü 漢 \U0001f642 " + "long " * 1000)
flush()

# On a span that never comes: what it says is a row, and a comment on nothing is none.
feedback("never", scores={"human": 1})
feedback("nowhere", comment="on nothing")
flush()

# In an experiment.
experiment = braintrust.init(project=project, experiment="e")
experiment.log_feedback(id="case", comment="early")
flush()
experiment.log(id="case", input=1, output=2, scores={"own": 0})
flush()
experiment.log_feedback(id="case", comment="late", scores={"human": None, "more": 0.75}, metadata={"who": "ann"})
flush()


def read():
    rows = {id.removeprefix(f"{project}-"): row for id, row in fetch("project_logs", logger.project.id).items()}
    rows.update(fetch("experiment", experiment.id))
    return rows


def is_right(rows):
    same("rows", set(rows), {"early", "with", "late", "other", "never", "case"})
    row = rows["early"]
    same("early", (row["input"], row["output"], comments(row)), ("i", "of early", ["early one", "early two"]))
    same("replaced", (row["scores"], row.get("expected"), row["tags"]), ({"own": 1}, None, ["own"]))
    row = rows["with"]
    same("with", (row["input"], row["output"], comments(row)), ("i", "of with", ["with it"]))
    same("with", (row["scores"], row["expected"], row["tags"]), ({"own": 0, "human": 0.25}, "e", ["own", "human"]))
    row = rows["late"]
    same("late", (row["input"], row["output"], comments(row)), ("i", "of late", [*(f"late {i}" for i in range(4)), "only a comment"]))
    same("late", row["scores"], {"own": 1, "human": 0.75, **{f"human-{i}": 1 for i in range(4)}})
    same("late", (row["expected"], row["tags"]), ({"round": 3, **{f"round-{i}": True for i in range(4)}}, ["own", *(f"round-{i}" for i in range(4))]))
    for name in ("with", "late"):
        same("the metadata of feedback is not its row's", rows[name]["metadata"], {"own": True})
    same("other", (rows["other"]["output"], comments(rows["other"])), ("updated", ["ü 漢 \U0001f642 " + "long " * 1000]))
    same("never", (rows["never"]["scores"], rows["never"].get("input"), comments(rows["never"])), ({"human": 1}, None, []))
    row = rows["case"]
    same("case", (row["output"], row["scores"], comments(row)), (2, {"own": 0, "human": None, "more": 0.75}, ["early", "late"]))


is_right(read())


def written(id):
    """What was written to a row, newest first, as the log of it says."""
    query = f"select: * | from: project_logs('{logger.project.id}') | filter: id = '{project}-{id}'"
    return ask("POST", "/btql", query=query, audit_log=True)["data"]


same("writes", [row["audit_data"]["action"] for row in written("late")][-5:], ["merge"] * 4 + ["upsert"])

# Everything is sent again, as a client does that did not hear the answer: each flush twice, in its order.
before = read()
assert len(sent) > 12 and all(sent), sent
for files in sent:
    for _ in range(2):
        for path in files:
            answer = requests.post(f"{URL}/logs3", headers=HEADERS, data=path.read_bytes(), timeout=60)
            assert answer.status_code == 200, answer.text
after = read()
is_right(after)
for name, row in before.items():
    fields = lambda row: {key: value for key, value in row.items() if key not in ("_xact_id", "_pagination_key", "audit_data", "comments")}
    same(f"{name} as it was", fields(after[name]), fields(row))
    ids = lambda row: sorted(comment["id"] for comment in row.get("comments") or [])
    same("the same comments", ids(after[name]), ids(row))

# Over REST the same again: an answer that was lost, and the request repeated.
for _ in range(2):
    given = {"id": f"{project}-late", "scores": {"human": 1}, "comment": "over REST", "source": "api", "metadata": {"who": "cid"}}
    ask("POST", f"/v1/project_logs/{logger.project.id}/feedback", feedback=[given])
row = read()["late"]
same("over REST", (row["scores"]["human"], row["metadata"]), (1, {"own": True}))
assert "over REST" in comments(row), comments(row)
print("feedback: ok")
