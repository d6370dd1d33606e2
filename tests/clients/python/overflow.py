"""Rows that one request is too small for, where answers are lost: each step is done again, and the rows are there once."""

import io
import os
import sys

from cutting import UNANSWERED, Cutting
from reading import URL, comments, fetch, same

lost = set()


def decide(line, body):
    """The first answer of each step is lost: where to upload, the upload, and what was uploaded."""
    step = line.split("?")[0].split(" HTTP")[0]
    if step.startswith("PUT /attachment/bytes/"):
        step = "PUT"
    elif step != "POST /logs3/overflow" and not (step == "POST /logs3" and b"logs3_overflow" in body[:200]):
        return None
    if step in lost:
        return None
    lost.add(step)
    return UNANSWERED


way = Cutting(URL, decide)
os.environ |= {"BRAINTRUST_APP_URL": way.url, "BRAINTRUST_API_URL": way.url, "BRAINTRUST_NUM_RETRIES": "5"}
# What the SDK says when it tries again is expected here.
said = sys.stderr = io.StringIO()

import braintrust

logger = braintrust.init_logger(project=f"overflow-{sys.argv[1]}")
text = "ü" * (4 << 20)
with logger.start_span(name="too large", id="huge") as span:
    span.log(input=text, output="o", metadata={"a": {"x": 1}})
    span.log(metadata={"a": {"y": 2}}, scores={"good": 0.5})
logger.log_feedback(id="huge", comment="seen", scores={"better": 1})
logger.flush()
sys.stderr = sys.__stderr__
same("lost", lost, {"POST /logs3/overflow", "PUT", "POST /logs3"})
same("cuts", len(way.cuts), 3)
assert "Dropping batch" not in said.getvalue(), said.getvalue()
rows = fetch("project_logs", logger.project.id)
same("once", list(rows), ["huge"])
row = rows["huge"]
same("whole", (row["input"] == text, row["output"], row["metadata"]), (True, "o", {"a": {"x": 1, "y": 2}}))
same("feedback", (row["scores"], comments(row)), ({"good": 0.5, "better": 1}, ["seen"]))
print("overflow: ok")
