# Runs the evaluation that stands in the input with the SDK. The last line of the output has its cost and its scores.
import json
import sys
import time

import braintrust


def handler_of(code, name):
    names = {}
    exec(code, names)
    names["handler"].__name__ = name
    return names["handler"]


order = json.load(sys.stdin)
task = handler_of(order["task"], "task")
scorers = [handler_of(scorer["code"], scorer["name"]) for scorer in order["scorers"]]
cpu, began = time.process_time(), time.monotonic()
result = braintrust.Eval(
    "functions", data=order["cases"], task=task, scores=scorers, max_concurrency=order["concurrency"]
)
braintrust.flush()
report = {
    "seconds": time.monotonic() - began,
    "cpu_seconds": time.process_time() - cpu,
    "scores": {name: summary.score for name, summary in result.summary.scores.items()},
}
print(json.dumps(report))
