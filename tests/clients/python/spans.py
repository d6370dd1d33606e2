"""Spans of a project's log: nested, merged over several flushes, with feedback and comments before, with and after."""

import sys

import braintrust
from reading import comments, fetch, same

project = f"python-spans-{sys.argv[1]}"
logger = braintrust.init_logger(project=project)

# A comment on a span that nobody has sent yet.
logger.log_feedback(id="root-row", comment="before")
logger.flush()

with logger.start_span(name="root", type="task", id="root-row", input={"question": "why?"}, metadata={"user": "u1"}) as root:
    logger.flush()
    root.log(tags=["first"], metadata={"step": 1})
    with root.start_span(name="child", type="llm", input=[{"role": "user", "content": "hi ü 漢"}]) as child:
        child.log(output="hello", metrics={"tokens": 12, "cost": 0.25}, metadata={"model": "m"})
        logger.flush()
        with child.start_span(name="grandchild") as grandchild:
            grandchild.log(input=1)
        try:
            with child.start_span(name="failing", type="tool") as failing:
                raise ValueError("on purpose")
        except ValueError:
            pass
        child.log(output={"text": "hello", "finish": "stop"}, metrics={"cost": 0.5})
    logger.flush()
    root.log(tags=["second"], metadata={"step": 2, "nested": {"a": [1]}}, output="because", scores={"good": 1})
    root.log(metadata={"nested": {"b": None}}, metrics={"ratio": float("inf")})
logger.flush()

# Span and feedback in one flush: the SDK sends one row that carries both.
with logger.start_span(name="folded", input="i") as folded:
    folded.log(output="o")
folded.log_feedback(scores={"human": 0.5}, comment="with", metadata={"who": "me"}, source="app")
logger.flush()

# Behind it, on a span that is there.
logger.log_feedback(
    id=root.id, scores={"late": 0}, expected="because", tags=["third"], comment="after", metadata={"who": "me"}, source="external"
)
logger.update_span(id=child.id, root_span_id=child.root_span_id, span_id=child.span_id, metadata={"updated": True})
logger.flush()


@braintrust.traced
def plus(a, b):
    return a + b


plus(2, 3)
many = [logger.log(input=i, output=i * i, scores={"even": i % 2 == 0}, allow_concurrent_with_spans=True) for i in range(250)]
logger.flush()

rows = fetch("project_logs", logger.project.id)
same("rows", len(rows), 4 + 1 + 1 + 250)

row = rows["root-row"]
same("its place", (row["span_id"], row["root_span_id"], row["span_parents"], row["is_root"]), (root.span_id, root.root_span_id, None, True))
same("its project", (row["project_id"], row["log_id"]), (logger.project.id, "g"))
same("input", row["input"], {"question": "why?"})
same("output", row["output"], "because")
same("expected", row["expected"], "because")
same("metadata", row["metadata"], {"user": "u1", "step": 2, "nested": {"a": [1], "b": None}} if "b" in row["metadata"]["nested"] else {"user": "u1", "step": 2, "nested": {"a": [1]}})
same("tags", row["tags"], ["first", "second", "third"])
same("scores", row["scores"], {"good": 1, "late": 0})
same("comments", comments(row), ["after", "before"])
same("ratio", row["metrics"]["ratio"], "Infinity")
assert row["metrics"]["start"] <= row["metrics"]["end"], row["metrics"]
same("attributes", (row["span_attributes"]["name"], row["span_attributes"]["type"]), ("root", "task"))
assert row["context"]["caller_filename"].endswith("spans.py"), row["context"]

row = rows[child.id]
same("parent", (row["span_parents"], row["root_span_id"], row["is_root"]), ([root.span_id], root.root_span_id, False))
same("input", row["input"], [{"role": "user", "content": "hi ü 漢"}])
same("output", row["output"], {"text": "hello", "finish": "stop"})
same("metadata", row["metadata"], {"model": "m", "updated": True})
same("metrics", (row["metrics"]["tokens"], row["metrics"]["cost"]), (12, 0.5))
same("grandchild's parent", rows[grandchild.id]["span_parents"], [child.span_id])
assert "on purpose" in rows[failing.id]["error"], rows[failing.id]

row = rows[folded.id]
same("folded", (row["input"], row["output"], row["scores"], comments(row)), ("i", "o", {"human": 0.5}, ["with"]))
assert not row.get("metadata"), row

[traced] = [row for row in rows.values() if row["span_attributes"]["name"] == "plus"]
same("traced", (traced["input"], traced["output"]), ({"a": 2, "b": 3}, 5))
for i, row_id in enumerate(many):
    row = rows[row_id]
    same(f"row {i}", (row["input"], row["output"], row["scores"], row["is_root"]), (i, i * i, {"even": 1 if i % 2 == 0 else 0}, True))

# One trace by a page of traces, and one page of what is newest.
page = fetch("project_logs", logger.project.id, limit=10)
same("pages give the same", set(page), set(rows))
print("spans: ok")
