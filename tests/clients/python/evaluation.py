"""Evaluations: twice with a base, trials and a scorer that fails; opened again, and as a dataset; what the summaries say."""

import os
import sys

os.environ["BRAINTRUST_LEGACY_IDS"] = "1"  # `as_dataset` tells roots by their ids

import braintrust
from reading import fetch, same

project = f"python-evaluation-{sys.argv[1]}"
CASES = [{"input": i, "expected": i * 2, "metadata": {"case": i}} for i in range(4)]


def exact(input, output, expected):
    return 1 if output == expected else 0


def failing(input, output, expected):
    if input == 3:
        raise ValueError("on purpose")
    return {"name": "failing", "score": 0.5, "metadata": {"why": "half"}}


def evaluated(name, task, **more):
    result = braintrust.Eval(project, experiment_name=name, data=lambda: CASES, task=task, scores=[exact, failing], trial_count=2, **more)
    return result.summary


first = evaluated("first", lambda i: i)
same("first", (first.scores["exact"].score, first.comparison_experiment_name), (0.5 / 2, None))
second = evaluated("second", lambda i: i * 2, base_experiment_name="first")
same("base", second.comparison_experiment_name, "first")
exactly = second.scores["exact"]
same("exact", (exactly.score, exactly.diff, exactly.improvements, exactly.regressions), (1, 0.75, 3, 0))
same("failing", (second.scores["failing"].score, second.scores["failing"].diff), (0.5, 0))
assert second.metrics["duration"].unit == "s" and second.metrics["duration"].metric >= 0, second.metrics

rows = fetch("experiment", second.experiment_id)
roots = [row for row in rows.values() if row["is_root"]]
same("trials", len(roots), 2 * len(CASES))
same("types", sorted({row["span_attributes"].get("type") for row in rows.values()}), ["eval", "score", "task"])
scored = [row for row in rows.values() if row["span_attributes"].get("type") == "score"]
given = lambda root, name: [row.get("scores") for row in scored if row["root_span_id"] == root["root_span_id"] and row["span_attributes"]["name"] == name]
for root in roots:
    same("exact", given(root, "exact"), [{"exact": 1}])
    if root["input"] == 3:
        assert "on purpose" in str(root["metadata"]["scorer_errors"]["failing"]), root["metadata"]
        same("a scorer that failed", given(root, "failing"), [None])
    else:
        same("a scorer that did not", given(root, "failing"), [{"failing": 0.5}])

# Its name is taken: another one. Opened again, and as a dataset.
third = evaluated("second", lambda i: i * 2)
assert third.experiment_name.startswith("second-"), third.experiment_name
opened = braintrust.init(project=project, experiment="first", open=True)
same("opened", opened.id, first.experiment_id)
cases = list(opened.as_dataset())
same("as a dataset", sorted((case["input"], case["expected"]) for case in cases), sorted((case["input"], case["expected"]) for case in CASES * 2))
again = braintrust.Eval(project, experiment_name="over", data=opened.as_dataset(), task=lambda i: i * 2, scores=[exact]).summary
same("over it", again.scores["exact"].score, 1)
try:
    braintrust.init(project=project, experiment="nowhere", open=True).id
except Exception as error:
    assert "nowhere" in str(error), error
else:
    raise AssertionError("what is not there was opened")
print("evaluation: ok")
