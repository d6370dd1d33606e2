"""Examples of Langfuse's documentation with its unmodified SDK, read back through its API and through ours."""

import json
import os
import sys
import time
import urllib.parse
import urllib.request

import langfuse as sdk
from langfuse import Langfuse, observe, propagate_attributes
from langfuse.api import NotFoundError

run = sys.argv[1]
URL, KEY, PROJECT = os.environ["LANGFUSE_BASE_URL"], os.environ["ASSAY_KEY"], os.environ["ASSAY_PROJECT"]
ENCODES_METADATA = int(sdk.__version__.split(".")[0]) >= 5
langfuse = Langfuse()
api = langfuse.api


def scores_of(trace_id):
    """The scores of a trace, in the newest form that the SDK reads."""
    get = api.scores.get_many if ENCODES_METADATA else api.scores_v3.get_many_v3
    return get(trace_id=trace_id, fields="subject,details").data


def same(found, wanted, what):
    if found != wanted:
        raise SystemExit(f"{what}: {found!r}, and not {wanted!r}")


def ours(query):
    """The rows of a query of this server's own API."""
    body = json.dumps({"query": query, "fmt": "json"}).encode()
    request = urllib.request.Request(
        f"{URL}/btql", body, {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


def observations(trace_id):
    """The observations of a trace by name, which are there when the flush is."""
    page = api.observations.get_many(trace_id=trace_id, fields="core,basic,time,io,metadata,model,usage,prompt,metrics,trace_context")
    return {one.name: one for one in page.data}


def nested_spans_and_a_generation():
    with propagate_attributes(
        user_id="user-1", session_id=f"session-{run}", tags=["beta", run], metadata={"tier": "gold"}, trace_name="support"
    ):
        with langfuse.start_as_current_observation(
            as_type="span", name="request", input={"q": "hi"}, metadata={"attempt": 1, "text": "123", "deep": {"a": [1]}}
        ) as root:
            with root.start_as_current_observation(as_type="retriever", name="lookup", input="hi") as retriever:
                retriever.update(output=["doc"], level="WARNING", status_message="slow")
            with root.start_as_current_observation(
                as_type="generation",
                name="answer",
                model="gpt-4o",
                model_parameters={"temperature": 0.5, "max_tokens": 10},
                input=[{"role": "user", "content": "hi"}],
            ) as generation:
                generation.update(
                    output={"role": "assistant", "content": "hello"},
                    usage_details={"input": 10, "output": 5, "cache_read_input_tokens": 2},
                    cost_details={"input": 0.25, "output": 0.5},
                )
                generation.score(name="relevance", value=0.75, comment="good")
            root.update(output="hello")
            root.score_trace(name="helpful", value=1, data_type="BOOLEAN")
            root.score_trace(name="tone", value="friendly", data_type="CATEGORICAL")
            root.score_trace(name="stars", value=4.0)
        trace_id, root_id, generation_id = root.trace_id, root.id, generation.id
    langfuse.flush()

    found = observations(trace_id)
    same(sorted(found), ["answer", "lookup", "request"], "the observations")
    top, answer, lookup = found["request"], found["answer"], found["lookup"]
    same((top.type, top.parent_observation_id, answer.parent_observation_id), ("SPAN", None, root_id), "the tree")
    same((json.loads(top.input), top.output), ({"q": "hi"}, "hello"), "input and output")
    metadata = {key: top.metadata.get(key) for key in ("attempt", "text", "deep")}
    # Earlier SDKs send numbers as texts.
    same(metadata, {"attempt": 1, "text": "123", "deep": {"a": [1]}}, "metadata keeps its types")
    same((lookup.type, str(lookup.level.value), lookup.status_message), ("RETRIEVER", "WARNING", "slow"), "levels")
    same((answer.type, answer.model, answer.model_parameters), ("GENERATION", "gpt-4o", {"temperature": 0.5, "max_tokens": 10}), "the model")
    same(answer.usage_details, {"input": 10, "output": 5, "cache_read_input_tokens": 2, "total": 17}, "usage")
    same((answer.cost_details, answer.total_cost), ({"input": 0.25, "output": 0.5, "total": 0.75}, 0.75), "cost")
    same((top.user_id, top.session_id, top.trace_name, top.tags), ("user-1", f"session-{run}", "support", ["beta", run]), "the trace")

    scores = {one.name: one for one in scores_of(trace_id)}
    same(sorted(scores), ["helpful", "relevance", "stars", "tone"], "the scores")
    same((scores["relevance"].value, scores["relevance"].comment, scores["relevance"].subject.id), (0.75, "good", generation_id), "a score")
    same((scores["helpful"].value, scores["tone"].value, scores["stars"].value), (True, "friendly", 4.0), "values of scores")

    rows = {row["span_attributes"]["name"]: row for row in ours(f"select: * | from: project_logs('{PROJECT}') | filter: root_span_id = '{trace_id}'")}
    same(rows["support"]["scores"], {"helpful": 1}, "a score of the trace")
    same(rows["support"]["metadata"]["langfuse"]["scores"], {"tone": "friendly", "stars": 4}, "other values")
    same(rows["answer"]["scores"], {"relevance": 0.75}, "a score of an observation")
    metrics = rows["answer"]["metrics"]
    same((metrics["prompt_tokens"], metrics["completion_tokens"], metrics["estimated_cost"]), (12, 5, 0.75), "metrics")
    same((rows["support"]["metadata"]["user_id"], rows["support"]["tags"]), ("user-1", ["beta", run]), "the row of the trace")
    same((rows["support"]["is_root"], rows["request"]["is_root"]), (True, False), "the trace is the root")


def decorators():
    @observe(as_type="tool", name="add")
    def add(a, b):
        return a + b

    @observe(name="sum")
    def total():
        return add(1, 2), langfuse.get_current_trace_id()

    (three, trace_id) = total()
    langfuse.flush()
    found = observations(trace_id)
    same((three, found["add"].type, found["add"].output), (3, "TOOL", "3"), "a decorated function")
    same(found["add"].parent_observation_id, found["sum"].id, "its parent")


def a_failure():
    try:
        with langfuse.start_as_current_observation(as_type="agent", name="broken") as span:
            trace_id = span.trace_id
            raise ValueError("no luck")
    except ValueError:
        pass
    langfuse.flush()
    broken = observations(trace_id)["broken"]
    same((broken.type, str(broken.level.value)), ("AGENT", "ERROR"), "a failure")


def a_score_before_its_span():
    span = langfuse.start_observation(name="long", as_type="span")
    langfuse.create_score(name="early", value=0.5, trace_id=span.trace_id, observation_id=span.id, score_id=f"early-{run}")
    wait_for(lambda: scores_of(span.trace_id), "a score")
    span.end()
    langfuse.flush()
    rows = ours(f"select: * | from: project_logs('{PROJECT}') | filter: span_id = '{span.id}'")
    same((rows[0]["scores"], rows[0]["span_parents"]), ({"early": 0.5}, [span.trace_id]), "a score that was early")


def wait_for(found, what):
    for _ in range(100):
        if value := found():
            return value
        time.sleep(0.1)
    raise SystemExit(f"{what} did not arrive")


def prompts():
    name = f"movie/critic {run}"
    langfuse.create_prompt(name=name, prompt="Do you like {{movie}}?", labels=["production"], tags=["film"], config={"model": "gpt-4o", "temperature": 0.7})
    second = langfuse.create_prompt(name=name, prompt="Rate {{movie}}.", labels=["staging"])
    same(second.version, 2, "the second version")
    prompt = langfuse.get_prompt(name, cache_ttl_seconds=0)
    same((prompt.version, prompt.compile(movie="Dune 2"), prompt.config["model"]), (1, "Do you like Dune 2?", "gpt-4o"), "production")
    same(langfuse.get_prompt(name, label="staging", cache_ttl_seconds=0).prompt, "Rate {{movie}}.", "staging")
    same(langfuse.get_prompt(name, label="latest", cache_ttl_seconds=0).version, 2, "latest")
    langfuse.update_prompt(name=name, version=2, new_labels=["production"])
    moved = langfuse.get_prompt(name, cache_ttl_seconds=0)
    same((moved.version, sorted(moved.labels)), (2, ["latest", "production", "staging"]), "moved labels")
    same(langfuse.get_prompt(name, version=1, cache_ttl_seconds=0).labels, [], "labels that left")
    chat = [{"role": "system", "content": "You are {{who}}."}, {"type": "placeholder", "name": "history"}]
    langfuse.create_prompt(name=f"chat {run}", type="chat", prompt=chat, labels=["production"])
    found = langfuse.get_prompt(f"chat {run}", type="chat", cache_ttl_seconds=0)
    compiled = found.compile(who="Ann", history=[{"role": "user", "content": "hi"}])
    same(compiled[0]["content"], "You are Ann.", "a chat prompt")
    try:
        langfuse.get_prompt(f"none {run}", max_retries=0)
        raise SystemExit("a missing prompt is an error")
    except NotFoundError:
        pass
    listed = {one.name: one for one in api.prompts.list(name=name).data}
    same((listed[name].versions, sorted(listed[name].labels)), ([1, 2], ["latest", "production", "staging"]), "the list")
    with langfuse.start_as_current_observation(as_type="generation", name="prompted", prompt=moved) as generation:
        trace_id = generation.trace_id
    langfuse.flush()
    one = observations(trace_id)["prompted"]
    same((one.prompt_name, one.prompt_version), (name, 2), "the prompt of a generation")


def datasets_and_runs():
    name = f"capitals {run}"
    dataset = langfuse.create_dataset(name=name, description="d", metadata={"a": 1})
    for country, capital in [("France", "Paris"), ("Spain", "Madrid")]:
        langfuse.create_dataset_item(dataset_name=name, input={"country": country}, expected_output=capital, metadata={"k": country})
    found = langfuse.get_dataset(name)
    same((found.id, sorted(item.expected_output for item in found.items)), (dataset.id, ["Madrid", "Paris"]), "a dataset")

    def task(*, item, **kwargs):
        return {"France": "Paris", "Spain": "Lisbon"}[item.input["country"]]

    def exact(*, output, expected_output, **kwargs):
        from langfuse import Evaluation

        return Evaluation(name="exact", value=1.0 if output == expected_output else 0.0)

    result = found.run_experiment(name="capitals", run_name=f"run {run}", task=task, evaluators=[exact])
    langfuse.flush()
    same(len(result.item_results), 2, "the items of a run")
    rows = ours(f"select: * | from: experiment('{experiment(f'run {run}')}')")
    same(sorted((row["output"], row["expected"]) for row in rows), [("Lisbon", "Madrid"), ("Paris", "Paris")], "the experiment")
    same(sorted((row["scores"] or {}).get("exact") for row in rows), [0, 1], "scores of the experiment")


def experiment(name):
    request = urllib.request.Request(
        f"{URL}/v1/experiment?" + urllib.parse.urlencode({"experiment_name": name, "project_id": PROJECT}),
        headers={"authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["objects"][0]["id"]


def what_is_not_there():
    for call in (lambda: api.score_configs.get(), lambda: api.comments.get(), lambda: api.metrics.metrics(query="{}")):
        try:
            call()
        except Exception as error:
            same(getattr(error, "status_code", None), 501, "an operation without an equivalent")
        else:
            raise SystemExit("an operation without an equivalent was accepted")


same(langfuse.auth_check(), True, "the keys")
for example in (
    nested_spans_and_a_generation, decorators, a_failure, a_score_before_its_span, prompts, datasets_and_runs, what_is_not_there,
):
    example()
