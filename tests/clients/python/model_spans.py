"""Calls models through the gateway with official SDKs, and finds their spans by queries.

Usage: model_spans.py ORIGIN KEY. The models are those of the test of clients through the gateway.
"""

import json
import sys
import time
import urllib.request

import anthropic
import openai
from google import genai
from google.genai import types

ORIGIN, KEY = sys.argv[1:3]
# Time within which a span has to be found, and between two queries.
FOUND_WITHIN_S, POLL_S = 15, 0.1
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASKED = "weather and time?"
CALLS = [("get_weather", {"city": "Paris"}), ("get_time", {"city": "Oslo"})]
TOOLS = [("get_weather", "The weather of a city"), ("get_time", "The time in a city")]


def parent(project):
    return {"x-bt-parent": "project_name:" + project}


def rows(project, count):
    """The spans of a project, as soon as there are so many that have ended, by the time of their start."""
    ended = "filter: metrics.end is not null | sort: metrics.start"
    query = f'select: * | from: project_logs("{project}") | {ended} | limit: 50'
    body = json.dumps({"query": query, "fmt": "json"}).encode()
    headers = {"authorization": "Bearer " + KEY, "content-type": "application/json"}
    deadline = time.monotonic() + FOUND_WITHIN_S
    while True:
        request = urllib.request.Request(ORIGIN + "/btql", body, headers)
        with urllib.request.urlopen(request) as answer:
            found = json.load(answer)["data"]
        if len(found) >= count:
            return found
        assert time.monotonic() < deadline, f"{len(found)} of {count} spans of {project}"
        time.sleep(POLL_S)


def chat(model, project):
    client = openai.OpenAI(base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0, default_headers=parent(project))
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello wide world"}]
    list(client.chat.completions.create(model=model, messages=messages, stream=True))
    tools = [{"type": "function", "function": {"name": n, "description": d, "parameters": CITY}} for n, d in TOOLS]
    asked = [{"role": "user", "content": ASKED}]
    list(client.chat.completions.create(model=model, messages=asked, tools=tools, stream=True))
    failed(lambda: client.chat.completions.create(model=model, messages=[{"role": "user", "content": "fail 400"}]))


def responses(model, project):
    client = openai.OpenAI(base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0, default_headers=parent(project))
    list(client.responses.create(model=model, instructions="be brief", input="hello wide world", stream=True))
    tools = [{"type": "function", "name": n, "description": d, "parameters": CITY, "strict": False} for n, d in TOOLS]
    list(client.responses.create(model=model, input=[{"role": "user", "content": ASKED}], tools=tools, stream=True))
    failed(lambda: client.responses.create(model=model, input="fail 400"))


def messages(model, project):
    client = anthropic.Anthropic(base_url=ORIGIN, api_key=KEY, max_retries=0, default_headers=parent(project))
    said = [{"role": "user", "content": "hello wide world"}]
    list(client.messages.create(model=model, max_tokens=500, system="be brief", messages=said, stream=True))
    tools = [{"name": n, "description": d, "input_schema": CITY} for n, d in TOOLS]
    asked = [{"role": "user", "content": ASKED}]
    list(client.messages.create(model=model, max_tokens=500, messages=asked, tools=tools, stream=True))
    said = [{"role": "user", "content": "fail 400"}]
    failed(lambda: client.messages.create(model=model, max_tokens=500, messages=said))


def gemini(model, project):
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=ORIGIN, headers=parent(project)))
    stream = client.models.generate_content_stream
    list(stream(model=model, contents="hello wide world", config={"system_instruction": "be brief"}))
    declared = [{"name": n, "description": d, "parameters_json_schema": CITY} for n, d in TOOLS]
    config = {"automatic_function_calling": {"disable": True}, "tools": [{"function_declarations": declared}]}
    list(stream(model=model, contents=ASKED, config=config))
    failed(lambda: client.models.generate_content(model=model, contents="fail 400"))


def failed(call):
    try:
        call()
    except Exception as error:
        assert 400 in (getattr(error, "status_code", None), getattr(error, "code", None)), error
    else:
        raise AssertionError("no error")


def texts(value):
    """All texts within a value, in order."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for one in inner for text in texts(one)]


def check(client, model, project):
    plain, tools, error = rows(project, 3)
    for row, tokens in [(plain, [5, 7, 12]), (tools, [3, 2, 5])]:
        metrics = row["metrics"]
        assert [metrics[name] for name in ["prompt_tokens", "completion_tokens", "tokens"]] == tokens, metrics
        assert metrics["prompt_cached_tokens"] == 1, metrics
        assert 0 <= metrics["time_to_first_token"] <= metrics["end"] - metrics["start"] + 0.001, metrics
        assert row["error"] is None, row
    for row in (plain, tools, error):
        name = "Response" if client is responses else "Chat Completion"
        assert row["span_attributes"] == {"name": name, "type": "llm"}, row
        assert row["metadata"]["model"] == model and row["metadata"]["endpoint"] == "of-" + model.split("-")[0], row
    assert "hello wide world" in texts(plain["input"]), plain
    assert "be brief" in texts([plain["input"], plain["metadata"].get("instructions", "")]), plain
    assert "echo: hello wide world (told: be brief)" in texts(plain["output"]), plain
    offered = [tool.get("function", tool)["name"] for tool in tools["metadata"]["tools"]]
    assert offered == [name for name, _ in TOOLS], tools
    called = tools["output"] if client is responses else tools["output"][0]["message"]["tool_calls"]
    called = [one.get("function", one) for one in called]
    assert [(one["name"], json.loads(one["arguments"])) for one in called] == CALLS, tools
    assert error["metadata"]["gateway"]["status"] == 400 and error["error"], error


MODELS = ["chat-cached", "responses-cached", "anthropic-cached", "gemini-cached"]
CLIENTS = [chat, responses, messages, gemini]
calls = [(client, model, f"{client.__name__}-{model}") for client in CLIENTS for model in MODELS]
for client, model, project in calls:
    client(model, project)
for call in calls:
    check(*call)
