"""Functions that were pushed, invoked by the SDK: whole, streamed below a live span, and the spans that they leave."""

import json
import os
import time

import braintrust
from braintrust.functions.stream import BraintrustConsoleChunk, BraintrustInvokeError
from braintrust.util import AugmentedHTTPError
from reading import ask, fetch, same

# Polls until the server has written what it logs behind an answer.
POLLS_MAX = 1200
POLL_SECONDS = 0.05
PROJECT = os.environ["ASSAY_PROJECT"]
# Language of the functions, in whichever language this script is.
LANGUAGE = os.environ["ASSAY_LANGUAGE"]
TABLE = os.environ["ASSAY_CASES"]


def filled(value, project_id, root):
    """A case with the names of this run."""
    if value == "$project":
        return PROJECT
    if value == "$trace":
        return {"trace_ref": {"object_type": "project_logs", "object_id": project_id, "root_span_id": root}}
    if isinstance(value, dict):
        return {name: filled(member, project_id, root) for name, member in value.items()}
    return value


def invoke(case, **more):
    return braintrust.invoke(project_name=PROJECT, slug=case["slug"], input=case["input"], **more)


def failed(call):
    """Status and text of a failure."""
    try:
        found = call()
    except BraintrustInvokeError as error:
        return 500, str(error)
    except AugmentedHTTPError as error:
        return error.__cause__.response.status_code, str(error)
    raise AssertionError(f"no failure: {found}")


def check_failure(case, status, text):
    what = f"{case['slug']}: {text}"
    same(what, status, case.get("refused", 500))
    if "refused" in case:
        assert case["says"] in text, what
        return
    answer = json.loads(text)
    found = answer["FunctionError"]
    same(what, (found["name"], found["message"]), (case["error"]["name"], case["error"]["message"]))
    same(what, answer["Message"].split("\n")[0], case["error"]["message"])
    assert "find" in found["stack"] or LANGUAGE == "javascript", what
    assert len(found["stack"].splitlines()) > 1 and "assay_" not in found["stack"] and "worker" not in found["stack"], what


def whole(case):
    if "value" in case:
        same(case["slug"], invoke(case, parent=""), case["value"])
    else:
        check_failure(case, *failed(lambda: invoke(case, parent="")))


def streamed(case, place):
    """Invokes a case below the live span."""
    what = f"{case['slug']}, streamed"
    try:
        stream = invoke(case, stream=True, tags=[tag(place)])
        chunks = list(stream.copy())
        value = stream.final_value()
    except BraintrustInvokeError as error:
        assert "error" in case and case["error"]["message"] in str(error), f"{what}: {error}"
        return
    except AugmentedHTTPError as error:
        same(what, error.__cause__.response.status_code, case.get("refused"))
        return
    same(what, value, case["value"])
    said = [[chunk.stream, chunk.message] for chunk in chunks if isinstance(chunk, BraintrustConsoleChunk)]
    for name in ("stdout", "stderr"):
        lines = [line for line in case.get("console", []) if line[0] == name]
        same(f"{what}: {name}", [line for line in said if line[0] == name], lines)


def tag(place):
    """Tag by which the span of a case is found."""
    return f"case-{place}"


def descendants(rows, row):
    """Names of all spans below a row."""
    found = []
    for child in rows.values():
        if child["span_parents"] == [row["span_id"]]:
            same("the trace", child["root_span_id"], row["root_span_id"])
            found += [child["span_attributes"]["name"], *descendants(rows, child)]
    return sorted(found)


def check_rows(cases, project_id, request):
    wanted = {place: case for place, case in enumerate(cases) if "refused" not in case}
    for _ in range(POLLS_MAX):
        rows = fetch("project_logs", project_id)
        rows = {key: row for key, row in rows.items() if row["root_span_id"] == request.root_span_id}
        below = [row for row in rows.values() if row["span_parents"] == [request.span_id]]
        tagged = {row["tags"][0]: row for row in below if row.get("tags")}
        own = {place: tagged[tag(place)] for place in wanted if tag(place) in tagged}
        if set(own) >= set(wanted) and all(row["metrics"].get("end") for row in rows.values()):
            if all(descendants(rows, own[place]) == case.get("spans", []) for place, case in wanted.items()):
                break
        time.sleep(POLL_SECONDS)
    same("functions below the span", set(own), set(wanted))
    for place, case in wanted.items():
        row = own[place]
        what = f"the span of {case['slug']}"
        same(what, (row["span_attributes"]["name"], row["span_attributes"]["type"]), (case["name"], case["type"]))
        same(what, descendants(rows, row), case.get("spans", []))
        same(what, row.get("scores") or {}, case.get("scores", {}))
        if "value" in case:
            same(what, (row["output"], row.get("error")), (case["value"], None))
        else:
            assert case["error"]["message"] in str(row["error"]), row["error"]


def check_parameters():
    knobs = braintrust.load_parameters(project=PROJECT, slug="knobs")
    same("knobs", knobs.data["model"], "scripted")
    same("knobs", knobs.schema["properties"]["model"]["x-bt-type"], "model")


logger = braintrust.init_logger(project=PROJECT)
project_id = ask("POST", "/v1/project", name=PROJECT)["id"]
with open(TABLE) as file:
    table = json.load(file)
with logger.start_span(name="request") as span:
    with span.start_span(name="said", span_attributes={"type": "llm"}) as said:
        said.log(input="say", output="said")
    logger.flush()
    cases = [filled(case, project_id, span.root_span_id) for case in table["both"] + table[LANGUAGE]]
    for place, case in enumerate(cases):
        whole(case)
        streamed(case, place)
logger.flush()
check_rows(cases, project_id, span)
check_parameters()
print("pushed: ok")
