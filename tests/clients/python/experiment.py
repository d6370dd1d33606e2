"""An experiment: made, logged to, read back by the SDK's own iteration, opened again, and its name taken."""

import sys

import braintrust
from reading import comments, fetch, same

project = f"python-experiment-{sys.argv[1]}"
experiment = braintrust.init(project=project, experiment="first", description="d", metadata={"run": 1}, tags=["t"])
for i in range(3):
    experiment.log(
        id=f"case-{i}", input={"i": i}, output=i + 1, expected=i + 1, scores={"exact": 1, "none": None}, metadata={"i": i}, tags=[f"tag-{i}"]
    )
experiment.flush()
experiment.log_feedback(id="case-0", scores={"human": 0.25}, comment="look", metadata={"who": "me"})
experiment.update_span(id="case-1", output="changed", metadata={"again": True})
experiment.flush()

rows = {row["id"]: row for row in experiment}
same("iteration", set(rows), {"case-0", "case-1", "case-2"})
same("over HTTP", set(fetch("experiment", experiment.id, limit=1)), set(rows))
same("scores", rows["case-0"]["scores"], {"exact": 1, "none": None, "human": 0.25})
same("comments", comments(rows["case-0"]), ["look"])
same("output", rows["case-1"]["output"], "changed")
same("metadata", rows["case-1"]["metadata"], {"i": 1, "again": True})
same("tags", rows["case-2"]["tags"], ["tag-2"])
same("its experiment", rows["case-2"]["experiment_id"], experiment.id)
same("description", experiment.data["description"], "d")
same("experiment's metadata", experiment.data["metadata"], {"run": 1})

# Opened again, by name and to read.
opened = braintrust.init(project=project, experiment="first", open=True)
same("opened", opened.id, experiment.id)
same("its rows", {row["id"] for row in opened}, set(rows))

# The name is taken: another experiment, with a name of its own; unless it is to be updated.
second = braintrust.init(project=project, experiment="first", base_experiment="first")
assert second.id != experiment.id and second.name != "first" and second.name.startswith("first"), second.name
same("base", second.data["base_exp_id"], experiment.id)
updated = braintrust.init(project=project, experiment="first", update=True)
same("updated", (updated.id, updated.name), (experiment.id, "first"))

# Spans in it.
with second.start_span(name="task", input="q") as span:
    with span.start_span(name="inner", type="llm") as inner:
        inner.log(output="a")
    second.flush()
    span.log(output="a", scores={"s": 0.5})
second.flush()
rows = {row["id"]: row for row in second}
same("spans", set(rows), {span.id, inner.id})
same("merged", (rows[span.id]["input"], rows[span.id]["output"], rows[span.id]["scores"]), ("q", "a", {"s": 0.5}))
same("inner's parent", rows[inner.id]["span_parents"], [span.span_id])

# Without a name the server gives one.
unnamed = braintrust.init(project=project)
assert unnamed.name, "a name"
same("no rows yet", list(unnamed), [])
try:
    braintrust.init(project=project, experiment="never made", open=True).id
    raise AssertionError("an unknown experiment was opened")
except ValueError as error:
    assert "not found" in str(error), error
print("experiment: ok")
