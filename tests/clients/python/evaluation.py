"""Eval(): twice, with a base, trials, a scorer that fails and a task that does; its numbers, and the rows that it left."""

import sys

import braintrust
from reading import URL, fetch, same

project = f"python-evaluation-{sys.argv[1]}"
cases = [{"input": i, "expected": i * 2, "metadata": {"case": i}, "tags": [f"tag-{i}"]} for i in range(1, 5)]


def exact(input, output, expected):
    return 1 if output == expected else 0


def near(input, output, expected):
    return {"name": "near", "score": max(0, 1 - abs(output - expected) / 8), "metadata": {"by": output - expected}}


def failing(input, output, expected):
    if input == 2:
        raise ValueError("on purpose")
    return None if input == 3 else 0.5


def first_task(input, hooks):
    hooks.metadata["hooked"] = True
    with braintrust.start_span(name="thinking", type="llm") as span:
        span.log(input=input, output=str(input), metrics={"tokens": 10})
    return input * 2 if input <= 2 else 0


def second_task(input, hooks):
    # 2 becomes worse, 3 and 4 better, of which 3 in one trial of two.
    return {1: 2, 2: 0, 3: [6, 2][hooks.trial_index], 4: 8}[input]


def run(name, task, data=cases, scores=(exact, near, failing), **more):
    return braintrust.Eval(project, experiment_name=name, data=data, task=task, scores=list(scores), **more)


def compared(summary):
    """Earlier ones have it in the summary itself."""
    return getattr(summary, "comparison", summary)


def told(result):
    scores = compared(result.summary).scores
    return {name: (round(s.score, 9), None if s.diff is None else round(s.diff, 9), s.improvements, s.regressions) for name, s in scores.items()}


first = run("first", first_task, description="d", metadata={"run": 1})
same("first", told(first), {"exact": (0.5, None, 0, 0), "near": (0.5625, None, 0, 0), "failing": (0.5, None, 0, 0)})
same("its names", (first.summary.project_name, first.summary.experiment_name), (project, "first"))
same("compared with nothing", first.summary.comparison_experiment_name, None)
same("its address", first.summary.experiment_url, f"{URL}/app/default/p/{project}/experiments/first")
same("its metrics", compared(first.summary).metrics["tokens"].metric, 10)

second = run("second", second_task, base_experiment_name="first", trial_count=2)
same("compared with", second.summary.comparison_experiment_name, "first")
# exact: 1, 0, 0.5 and 1 after 1, 1, 0 and 0. near: 1, 0.5, 0.75 and 1 after 1, 1, 0.25 and 0.
wanted = {"exact": (0.625, 0.125, 2, 1), "near": (0.8125, 0.25, 2, 1), "failing": (0.5, 0, 0, 0)}
same("second", told(second), wanted)
same("results", len(second.results), 8)
# Asked again, and against the other.
again = braintrust.init(project=project, experiment="second", update=True).summarize(comparison_experiment_id=first.summary.experiment_id)
same("again", {name: (round(s.score, 9), s.improvements, s.regressions) for name, s in compared(again).scores.items()}, {n: (w[0], w[2], w[3]) for n, w in wanted.items()})

# What is there of the first: each case is a trace of the case, its task with what that did, and three scorers.
rows = list(fetch("experiment", first.summary.experiment_id).values())
same("rows", len(rows), 4 * (1 + 1 + 1 + 3))
roots = {row["input"]: row for row in rows if row["is_root"]}
same("roots", set(roots), {1, 2, 3, 4})
for i, root in roots.items():
    output = i * 2 if i <= 2 else 0
    trace = {row["span_attributes"]["name"]: row for row in rows if row["root_span_id"] == root["root_span_id"]}
    same("its spans", set(trace), {"eval", "task", "thinking", "exact", "near", "failing"})
    same("case", (root["output"], root["expected"], root["tags"], root["span_attributes"]["type"]), (output, i * 2, [f"tag-{i}"], "eval"))
    same("case's metadata", (root["metadata"]["case"], root["metadata"]["hooked"]), (i, True))
    same("a scorer's error", list(root["metadata"].get("scorer_errors", {})), ["failing"] if i == 2 else [])
    same("below the case", {tuple(trace[name]["span_parents"]) for name in ("task", "exact", "near", "failing")}, {(root["span_id"],)})
    same("below the task", trace["thinking"]["span_parents"], [trace["task"]["span_id"]])
    same("task", (trace["task"]["input"], trace["task"]["output"]), (i, output))
    same("exact", (trace["exact"]["scores"], trace["exact"]["span_attributes"]["purpose"]), ({"exact": 1 if i <= 2 else 0}, "scorer"))
    same("near", (trace["near"]["scores"], trace["near"]["metadata"]), ({"near": 1 if i <= 2 else 1 - i / 4}, {"by": output - i * 2}))
    same("failing", trace["failing"].get("scores"), {1: {"failing": 0.5}, 2: None, 3: {"failing": None}, 4: {"failing": 0.5}}[i])
    assert ("on purpose" in str(trace["failing"].get("error"))) == (i == 2), trace["failing"]

rows = list(fetch("experiment", second.summary.experiment_id).values())
same("trials", sorted(row["input"] for row in rows if row["is_root"]), [1, 1, 2, 2, 3, 3, 4, 4])
same("outputs of the third", sorted(row["output"] for row in rows if row["is_root"] and row["input"] == 3), [2, 6])
opened = braintrust.init(project=project, experiment="second", open=True)
same("opened", {row["id"] for row in opened}, {row["id"] for row in rows})


# Over a dataset, with a task that fails; the name is taken, so it gets another. Compared with the newest.
dataset = braintrust.init_dataset(project=project, name="cases")
for case in cases:
    dataset.insert(id=f"case-{case['input']}", **case)
dataset.flush()


def broken(input):
    if input == 4:
        raise RuntimeError("broken task")
    return input * 2


third = run("second", broken, data=dataset, scores=[exact])
assert third.summary.experiment_name != "second" and third.summary.experiment_name.startswith("second"), third.summary
same("compared with the newest", third.summary.comparison_experiment_name, "second")
same("third", told(third), {"exact": (1, 0.5, 2, 0)})
rows = list(fetch("experiment", third.summary.experiment_id).values())
roots = {row["input"]: row for row in rows if row["is_root"]}
records = {record["id"]: record for record in dataset}
for i, root in roots.items():
    origin = {key: root["origin"][key] for key in ("object_type", "object_id", "id", "_xact_id")}
    same("origin", origin, {"object_type": "dataset", "object_id": dataset.id, "id": f"case-{i}", "_xact_id": records[f"case-{i}"]["_xact_id"]})
assert "broken task" in roots[4]["error"] and roots[4].get("output") is None, roots[4]
same("what failed", [str(result.error) for result in third.results if result.error], ["broken task"])
made = braintrust.init(project=project, experiment=third.summary.experiment_name, update=True)
same("its dataset", (made.data["dataset_id"], made.data["dataset_version"]), (dataset.id, max(record["_xact_id"] for record in records.values())))
print("evaluation: ok")
