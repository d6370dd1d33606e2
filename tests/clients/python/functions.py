"""Functions that the server runs: invoked whole and streamed, with tools, as judges, in an evaluation, below live spans."""

import sys
import time

import braintrust
import requests
from braintrust.functions.stream import (
    BraintrustErrorChunk,
    BraintrustInvokeError,
    BraintrustJsonChunk,
    BraintrustProgressChunk,
    BraintrustTextChunk,
)
from braintrust.util import AugmentedHTTPError
from reading import HEADERS, URL, ask, fetch, same

# Polls until the server has written what it logs behind an answer.
POLLS_MAX = 600
POLL_SECONDS = 0.05

project = f"python-functions-{sys.argv[1]}"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FORECAST = {"type": "function", "function": {"name": "forecast", "parameters": CITY}}
SHAPE = {"type": "json_schema", "json_schema": {"name": "place", "schema": CITY}}
CHOICES = {"right": 1, "wrong": 0.25}


def push():
    pushing = braintrust.projects.create(name=project)
    question = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "{{question}}"}]
    for slug, more in {
        "plain": {},
        "shaped": {"params": {"response_format": SHAPE}},
        "calling": {"tools": [FORECAST]},
        "broken": {"model": "broken"},
    }.items():
        pushing.prompts.create(name=slug, slug=slug, messages=question, **{"model": "scripted", **more})
    for use_cot in (True, False):
        pushing.scorers.create(
            name=f"Judge {use_cot}",
            slug=f"judge-{use_cot}".lower(),
            messages=[{"role": "user", "content": "Is {{output}} right for {{input}}, where {{expected}} is expected?"}],
            model="scripted",
            use_cot=use_cot,
            choice_scores=CHOICES,
        )
    pushing.prompts.create(name="look-up", slug="look-up", prompt="look up {{input}}", model="scripted")
    made = {function["slug"]: function["id"] for function in pushing.publish()["functions"]}
    pushing = braintrust.projects.create(name=project)
    tools = [{"type": "function", "id": made["look-up"]}, {"type": "global", "name": "ExactMatch", "function_type": "scorer"}]
    pushing.prompts.create(name="agent", slug="agent", messages=question, model="scripted", tools=tools)
    pushing.publish()
    return made


def invoke(slug, question=None, **more):
    given = {} if question is None else {"input": {"question": question}}
    return braintrust.invoke(project_name=project, slug=slug, **{**given, **more})


def failed(error, call):
    try:
        found = call()
    except error as why:
        return why
    raise AssertionError(f"no {error.__name__}: {found}")


def status(call):
    """Status of an answer that the SDK takes for a failure."""
    return failed(AugmentedHTTPError, call).__cause__.response.status_code


def judged(slug, choice, **more):
    given = {"input": "one and one", "output": f"two [choose {choice}]", "expected": "2"}
    return invoke(slug, input=given, **more)


made = push()

# Without a parent, and nothing is logged of all this.
same("a text", invoke("plain", "hi"), "echo: hi (told: be brief)")
same("a text that looks like JSON", invoke("plain", "[1]"), "echo: [1] (told: be brief)")
same("another message", invoke("plain", "hi", messages=[{"role": "user", "content": "and you"}]), "echo: and you (told: be brief)")
same("a shape", invoke("shaped", "hi"), {"city": "text"})
same("a shape as text", invoke("shaped", "hi", mode="text"), '{"city":"text"}')
same("a text as JSON", invoke("plain", "hi", mode="json"), "echo: hi (told: be brief)")
same("a call", invoke("calling", "hi"), {"city": "Paris"})
[call] = invoke("calling", "hi", mode="parallel")
same("calls", (call["name"], call["arguments"]), ("forecast", {"city": "Paris"}))
same("by id", braintrust.invoke(function_id=made["plain"], input={"question": "hi"}), "echo: hi (told: be brief)")
same("a global function", braintrust.invoke(global_function="ExactMatch", input={"output": "a", "expected": "a"}), {"name": "ExactMatch", "score": 1})

# The same as streams.
stream = invoke("plain", "hi", stream=True)
chunks = list(stream.copy())
assert all(isinstance(chunk, BraintrustTextChunk) for chunk in chunks), chunks
assert len(chunks) > 1, chunks
same("a streamed text", stream.final_value(), "echo: hi (told: be brief)")
for slug, value in (("shaped", {"city": "text"}), ("calling", {"city": "Paris"})):
    stream = invoke(slug, "hi", stream=True)
    assert all(isinstance(chunk, BraintrustJsonChunk) for chunk in stream.copy()), slug
    same(f"{slug}, streamed", stream.final_value(), value)

# Failures before the first piece have a status, and behind it an event.
same("no such function", status(lambda: invoke("none", "hi")), 404)
same("no model", status(lambda: invoke("plain", "hi", overrides={"model": "none"})), 400)
for refused, passed in ((429, 429), (500, 502), (401, 400)):
    for streamed in (False, True):
        same(f"{refused}, streamed {streamed}", status(lambda: invoke("plain", f"fail {refused}", stream=streamed)), passed)
same("strictly", status(lambda: invoke("plain", input={"other": 1}, strict=True)), 400)
assert "after 10 rounds" in str(failed(BraintrustInvokeError, lambda: invoke("agent", "rounds 99")))
stream = invoke("broken", "hi", stream=True)
text, *_, last = list(stream.copy())
assert isinstance(text, BraintrustTextChunk) and isinstance(last, BraintrustErrorChunk), (text, last)
assert "scripted" in last.data, last.data
same("an error in the middle", str(failed(BraintrustInvokeError, stream.final_value)), last.data)

# Tools that the server runs, for three rounds of two calls.
ROUND = "echo: look up Paris; {\"name\":\"ExactMatch\",\"score\":1}"
RESULTS = f"results: {ROUND}; {ROUND}; {ROUND}"
same("three rounds", invoke("agent", "rounds 3"), RESULTS)
stream = invoke("agent", "rounds 3", stream=True)
progress = [chunk for chunk in stream.copy() if isinstance(chunk, BraintrustProgressChunk)]
for name in ("look-up", "ExactMatch"):
    same(f"starts of {name}", sum(chunk.event == "start" for chunk in progress if chunk.name == name), 3)
    same(f"ends of {name}", sum(chunk.event == "done" for chunk in progress if chunk.name == name), 3)
same("three rounds, streamed", stream.final_value(), RESULTS)

# Judges, with reasons and without.
for choice, score in CHOICES.items():
    wanted = {"name": "Judge True", "score": score, "metadata": {"rationale": "The first choice fits.", "choice": choice}}
    same("a judge with reasons", judged("judge-true", choice), wanted)
    same("a judge with reasons, streamed", judged("judge-true", choice, stream=True).final_value(), wanted)
    wanted = {"name": "Judge False", "score": score, "metadata": {"choice": choice}}
    same("a judge without", judged("judge-false", choice), wanted)

project_id = ask("POST", "/v1/project", name=project)["id"]
same("nothing was logged", fetch("project_logs", project_id), {})


def whole(rows):
    return all(row["metrics"].get("end") for row in rows.values())


def logged(count, kind="project_logs", object_id=project_id):
    """Rows of an object, when there are so many and all have ended."""
    for _ in range(POLLS_MAX):
        rows = fetch(kind, object_id)
        if len(rows) >= count and whole(rows):
            break
        time.sleep(POLL_SECONDS)
    same(f"rows of {kind}", len(rows), count)
    return rows


def below(rows, parent):
    """Rows below a row by the names of their spans, in the order of their beginning."""
    found = {}
    for row in sorted(rows.values(), key=lambda row: row["metrics"]["start"]):
        if row["span_parents"] == [parent["span_id"]]:
            same("the trace", row["root_span_id"], parent["root_span_id"])
            found.setdefault(row["span_attributes"]["name"], []).append(row)
    return found


# Below a live span; and with an empty parent, below none.
logger = braintrust.init_logger(project=project)
with logger.start_span(name="request") as span:
    same("below a span", invoke("plain", "hi", metadata={"who": "me"}, tags=["t"]), "echo: hi (told: be brief)")
    judged("judge-true", "wrong")
    invoke("agent", "rounds 1", stream=True).final_value()
    same("an empty parent", invoke("plain", "unseen", parent=""), "echo: unseen (told: be brief)")
    same("a failure below a span", status(lambda: invoke("plain", "fail 429")), 429)
invoke("plain", "below the logger")
with logger.start_span(name="another") as other:
    pass
invoke("plain", "by its name", parent=other.export())
logger.flush()
rows = logged(18)
request = rows[span.id]
calls = below(rows, request)
same("functions", {name: len(spans) for name, spans in calls.items()}, {"plain": 2, "Judge True": 1, "agent": 1})

plain, refused = calls["plain"]
same("its type", plain["span_attributes"]["type"], "function")
same("its input", (plain["input"], plain["output"]), ({"question": "hi"}, "echo: hi (told: be brief)"))
same("its metadata", (plain["metadata"], plain["tags"]), ({"who": "me"}, ["t"]))
assert plain["id"] not in (plain["span_id"], span.id) and plain["span_id"] != request["span_id"]
[model] = below(rows, plain)["Chat Completion"]
same("the model", (model["span_attributes"]["type"], model["metadata"]["model"]), ("llm", "scripted"))
same("the prompt", (model["metadata"]["prompt"]["id"], model["metadata"]["prompt"]["variables"]["question"]), (made["plain"], "hi"))
same("its words", (model["metrics"]["prompt_tokens"], model["metrics"]["completion_tokens"]), (3, 5))
assert "429" in refused["error"] and refused.get("output") is None, refused

[judge] = calls["Judge True"]
same("a score", (judge["span_attributes"]["type"], judge["scores"]), ("score", {"Judge True": 0.25}))
same("its purpose", judge["span_attributes"]["purpose"], "scorer")
same("its reasons", judge["metadata"], {"rationale": "The first choice fits.", "choice": "wrong"})
[model] = below(rows, judge)["Chat Completion"]
same("the purpose below", model["span_attributes"]["purpose"], "scorer")

[agent] = calls["agent"]
steps = below(rows, agent)
same("steps", {name: len(spans) for name, spans in steps.items()}, {"Chat Completion": 2, "look-up": 1, "ExactMatch": 1})
same("a tool", (steps["look-up"][0]["span_attributes"]["type"], steps["look-up"][0]["output"]), ("tool", "echo: look up Paris"))
same("within a tool", list(below(rows, steps["look-up"][0])), ["Chat Completion"])

[root] = [row for row in rows.values() if row.get("input") == {"question": "below the logger"}]
same("a root", (root["span_parents"], root["is_root"]), (None, True))
same("by name", below(rows, rows[other.id])["plain"][0]["input"], {"question": "by its name"})

# What clients see of a span: its headers, where something is logged. `id` is a row's, and the slug goes on below it.
body = {"project_name": project, "slug": "plain", "input": {"question": "hi"}}
for parent in ("", None):
    answer = requests.post(f"{URL}/function/invoke", headers=HEADERS, json={**body, "parent": parent}, timeout=60)
    same("no headers", [name for name in answer.headers if name.lower().startswith("x-bt-span")], [])
answer = requests.post(f"{URL}/function/invoke", headers=HEADERS, json={**body, "parent": span.export()}, timeout=60)
with braintrust.start_span(name="below", parent=answer.headers["x-bt-span-export"]):
    pass
logger.flush()
rows = logged(21)
function = rows[answer.headers["x-bt-span-id"]]
same("another function", [row["id"] for row in below(rows, rows[span.id])["plain"]][-1], function["id"])
same("below it", set(below(rows, function)), {"Chat Completion", "below"})

# As the task and the scorers of an evaluation.
result = braintrust.Eval(
    project,
    experiment_name="functions",
    data=[{"input": {"question": "two [choose right]"}, "expected": "2"}, {"input": {"question": "three [choose wrong]"}, "expected": "2"}],
    task=braintrust.init_function(project, "plain"),
    scores=[braintrust.init_function(project, "judge-true"), braintrust.init_function(project, "judge-false")],
)
same("scores", {name: score.score for name, score in result.summary.scores.items()}, {"Judge True": 0.625, "Judge False": 0.625})
# Of each case the root, the task, two scores, and below the latter three a function with its model.
rows = logged(2 * 10, "experiment", result.summary.experiment_id)
for root in (row for row in rows.values() if row["is_root"]):
    steps = below(rows, root)
    [task] = steps["task"]
    [function] = below(rows, task)["plain"]
    same("a task", (function["output"], root["output"]), (task["output"], task["output"]))
    same("its model", list(below(rows, function)), ["Chat Completion"])
    for name in ("Judge True", "Judge False"):
        slug = name.lower().replace(" ", "-")
        [scorer] = steps[f"init_function-{project}-{slug}-latest"]
        [function] = below(rows, scorer)[name]
        same("a score", (function["scores"], set(function["scores"])), (scorer["scores"], {name}))
        same("its judge", list(below(rows, function)), ["Chat Completion"])
print("functions: ok")
