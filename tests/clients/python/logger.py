"""Spans of a logger as programs make them: nested by decorators, in tasks and threads, updated behind their end, ended elsewhere."""

import asyncio
import subprocess
import sys
import threading

import braintrust
from reading import fetch, same

project = f"python-logger-{sys.argv[1]}"


def elsewhere(exported, root):
    """What another process does with a span that this one began, and with the trace it belongs to."""
    braintrust.update_span(exported, output="from elsewhere", metadata={"elsewhere": True}, metrics={"end": 1e10})
    braintrust.update_span(root, metadata={"elsewhere": {"b": 2}}, tags=["elsewhere"])
    braintrust.flush()


if len(sys.argv) > 2:
    braintrust.login()
    elsewhere(*sys.argv[2:])
    sys.exit()

logger = braintrust.init_logger(project=project)


@braintrust.traced
def outer(a):
    return inner(a + 1) * 2


@braintrust.traced("renamed", type="tool", metadata={"fixed": 1})
def inner(b):
    braintrust.current_span().log(metadata={"seen": b})
    return b * 10


@braintrust.traced
def counted(to):
    yield from range(to)


@braintrust.traced
async def gathering(numbers):
    return await asyncio.gather(*(step(number) for number in numbers))


@braintrust.traced
async def step(number):
    # They end in another order than they began in.
    await asyncio.sleep(0.05 - number / 100)
    if number == 3:
        logger.flush()
    with braintrust.start_span(name=f"within-{number}", input=number):
        await asyncio.sleep(0.001)
    return number * number


same("nested", outer(4), 100)
same("a generator", list(counted(3)), [0, 1, 2])
same("in tasks", asyncio.run(gathering([0, 1, 2, 3, 4])), [0, 1, 4, 9, 16])

# Ended in another thread, which has a span of its own below it.
threaded = logger.start_span(name="threaded", input="begun here", start_time=1000.5)
logger.flush()


def in_thread():
    with threaded.start_span(name="in-thread", parent=threaded.export()) as span:
        span.log(output="there")
    threaded.log(output="ended there")
    threaded.set_attributes(name="renamed later", type="llm")
    threaded.end(end_time=1002.75)


thread = threading.Thread(target=in_thread)
thread.start()
thread.join()

# Begun here and updated in another process, behind a flush; this one ends it, and updates it again, afterwards.
root = logger.start_span(name="root", id=f"{project}-root", input="r", metadata={"elsewhere": {"a": 1}, "here": 1}, tags=["here"])
split = root.start_span(name="split", input={"begun": "here"})
logger.flush()
subprocess.run([sys.executable, *sys.argv[:2], split.export(), root.export()], check=True, timeout=60)
root.log(output="here", metadata={"here": 2})
root.end()
logger.flush()
braintrust.update_span(root.export(), scores={"late": 0.5}, metadata={"later": [1, {"x": None}]})
root.log(error="late as well")
logger.flush()

# Many steps of one span, some with a flush between them.
with logger.start_span(name="steps") as steps:
    for i in range(30):
        steps.log(metadata={"last": i, f"step-{i}": {"i": i}}, metrics={"steps": i}, output=list(range(i)))
        if i % 10 == 0:
            logger.flush()
logger.flush()

rows = list(fetch("project_logs", logger.project.id).values())
same("spans", len(rows), 2 + 1 + (1 + 5 * 2) + 2 + 2 + 1)
named = {row["span_attributes"]["name"]: row for row in rows if row["span_attributes"]["name"] != "step"}


def below(row, parent):
    return same(f"{row['span_attributes']} below", (row["span_parents"], row["root_span_id"], row["is_root"]), ([parent["span_id"]], parent["root_span_id"], False))


row = named["outer"]
same("outer", (row["input"], row["output"], row["is_root"], row["span_parents"]), ({"a": 4}, 100, True, None))
same("its type", row["span_attributes"]["type"], "function")
below(named["renamed"], row)
row = named["renamed"]
same("inner", (row["input"], row["output"], row["metadata"], row["span_attributes"]["type"]), ({"b": 5}, 50, {"fixed": 1, "seen": 5}, "tool"))
same("a generator's", (named["counted"]["input"], named["counted"]["output"]), ({"to": 3}, [0, 1, 2]))

row = named["gathering"]
same("gathering", (row["input"], row["output"]), ({"numbers": [0, 1, 2, 3, 4]}, [0, 1, 4, 9, 16]))
steps_of = {row["input"]["number"]: row for row in rows if row["span_attributes"]["name"] == "step"}
same("steps", set(steps_of), set(range(5)))
for number, step_row in steps_of.items():
    below(step_row, row)
    same("its square", step_row["output"], number * number)
    below(named[f"within-{number}"], step_row)
    same("within", named[f"within-{number}"]["input"], number)

row = named["renamed later"]
same("threaded", (row["input"], row["output"], row["span_attributes"]["type"]), ("begun here", "ended there", "llm"))
same("its times", (row["metrics"]["start"], row["metrics"]["end"]), (1000.5, 1002.75))
below(named["in-thread"], row)

row = named["split"]
same("split", (row["input"], row["output"], row["metadata"]), ({"begun": "here"}, "from elsewhere", {"elsewhere": True}))
same("its end", row["metrics"]["end"], 1e10)
assert row["metrics"]["start"] < 1e10, row["metrics"]
below(row, named["root"])

row = named["root"]
same("root", (row["id"], row["input"], row["output"], row["error"]), (f"{project}-root", "r", "here", "late as well"))
same("updated", (row["scores"], row["tags"]), ({"late": 0.5}, ["here", "elsewhere"]))
same("merged", row["metadata"], {"elsewhere": {"a": 1, "b": 2}, "here": 2, "later": [1, {"x": None}]})

row = named["steps"]
same("steps", (row["output"], row["metrics"]["steps"]), (list(range(29)), 29))
same("merged", row["metadata"], {"last": 29, **{f"step-{i}": {"i": i} for i in range(30)}})
print("logger: ok")
