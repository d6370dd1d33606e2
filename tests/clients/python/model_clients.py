"""Asks a model through the official SDKs of its providers, and prints what each SDK read as one JSON object.

Usage: model_clients.py ORIGIN KEY MODEL[,MODEL...] [CLIENT...]. ORIGIN is a scripted provider or a gateway before
one; the values have to be the same.
"""

import base64
import json
import sys
import traceback

import anthropic
import openai
from google import genai
from google.genai import errors as genai_errors
from google.genai import types

ORIGIN, KEY, MODELS = sys.argv[1:4]
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [("get_weather", "The weather of a city"), ("get_time", "The time in a city")]
NOTHING = {"type": "object", "properties": {}}
STATUSES = [400, 404, 429, 500, 503]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def failures(call, status, kinds):
    """Kind and status of the error that each of some statuses is for the caller."""
    found = []
    for wanted in STATUSES:
        try:
            call(f"fail {wanted}")
            found.append("no error")
        except kinds as error:
            found.append([type(error).__name__, status(error)])
    return found


def chat():
    client = openai.OpenAI(base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0)
    create = client.chat.completions.create
    tools = [{"type": "function", "function": {"name": n, "description": d, "parameters": CITY}} for n, d in TOOLS]

    def read(completion):
        message = completion.choices[0].message
        calls = [(c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or []]
        usage = completion.usage
        details = usage.prompt_tokens_details
        cached = (details.cached_tokens or 0) if details else 0
        return {
            "text": message.content or "",
            "calls": calls,
            "finish": completion.choices[0].finish_reason,
            "usage": [usage.prompt_tokens, usage.completion_tokens, cached],
        }

    plain = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello wide world"}]
    found = {"plain": read(create(model=MODEL, messages=plain))}
    text, finish, usage = "", None, None
    for chunk in create(model=MODEL, messages=plain, stream=True, stream_options={"include_usage": True}):
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
            finish = chunk.choices[0].finish_reason or finish
        usage = chunk.usage or usage
    found["stream"] = {"text": text, "finish": finish, "usage": [usage.prompt_tokens, usage.completion_tokens]}
    asked = [{"role": "user", "content": "weather and time?"}]
    first = create(model=MODEL, messages=asked, tools=tools)
    found["tools"] = read(first)
    with client.chat.completions.stream(model=MODEL, messages=asked, tools=tools) as stream:
        streamed = stream.get_final_completion().choices[0].message
    found["streamed_tools"] = [(c.function.name, json.loads(c.function.arguments)) for c in streamed.tool_calls]
    bare = [{"type": "function", "function": {"name": "ping", "parameters": NOTHING}}]
    with client.chat.completions.stream(model=MODEL, messages=asked, tools=bare) as stream:
        streamed = stream.get_final_completion().choices[0].message
    found["bare_tool"] = [(c.function.name, json.loads(c.function.arguments)) for c in streamed.tool_calls]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": content}
        for call, content in zip(first.choices[0].message.tool_calls, ["rain", "noon"])
    ]
    answered = asked + [first.choices[0].message.to_dict()] + results
    found["results"] = read(create(model=MODEL, messages=answered, tools=tools))
    forced = {"type": "function", "function": {"name": "get_time"}}
    found["forced"] = read(create(model=MODEL, messages=asked, tools=tools, tool_choice=forced))
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    found["image"] = read(create(model=MODEL, messages=[{"role": "user", "content": parts}]))
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}}
    found["schema"] = json.loads(create(model=MODEL, messages=asked, response_format=form).choices[0].message.content)
    for name, more in [("errors", {}), ("streamed_errors", {"stream": True})]:
        fail = lambda text: create(model=MODEL, messages=[{"role": "user", "content": text}], **more)
        found[name] = failures(fail, lambda error: error.status_code, openai.APIStatusError)
    return found


def embeddings():
    client = openai.OpenAI(base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0)
    made = client.embeddings.create(model=MODEL, input=["a cab", "beef"], encoding_format="float")
    return {"vectors": [one.embedding for one in made.data], "usage": made.usage.prompt_tokens}


def responses():
    client = openai.OpenAI(base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0)
    create = client.responses.create
    tools = [{"type": "function", "name": n, "description": d, "parameters": CITY, "strict": False} for n, d in TOOLS]

    def read(response):
        calls = [(i.name, json.loads(i.arguments)) for i in response.output if i.type == "function_call"]
        usage = response.usage
        return {
            "text": response.output_text,
            "calls": calls,
            "finish": response.status,
            "usage": [usage.input_tokens, usage.output_tokens, usage.input_tokens_details.cached_tokens],
        }

    found = {"plain": read(create(model=MODEL, instructions="be brief", input="hello wide world"))}
    with client.responses.stream(model=MODEL, instructions="be brief", input="hello wide world") as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        found["stream"] = {"text": text, "final": read(stream.get_final_response())}
    asked = [{"role": "user", "content": "weather and time?"}]
    first = create(model=MODEL, input=asked, tools=tools)
    found["tools"] = read(first)
    with client.responses.stream(model=MODEL, input=asked, tools=tools) as stream:
        for _ in stream:
            pass
        found["streamed_tools"] = read(stream.get_final_response())["calls"]
    bare = [{"type": "function", "name": "ping", "parameters": NOTHING, "strict": False}]
    with client.responses.stream(model=MODEL, input=asked, tools=bare) as stream:
        found["bare_tool"] = read(stream.get_final_response())["calls"]
    calls = [item for item in first.output if item.type == "function_call"]
    outputs = [
        {"type": "function_call_output", "call_id": call.call_id, "output": output}
        for call, output in zip(calls, ["rain", "noon"])
    ]
    history = asked + [item.to_dict() for item in calls] + outputs
    found["results"] = read(create(model=MODEL, input=history, tools=tools))
    found["forced"] = read(
        create(model=MODEL, input=asked, tools=tools, tool_choice={"type": "function", "name": "get_time"})
    )
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    parts = [{"type": "input_text", "text": "what is it?"}, {"type": "input_image", "image_url": url, "detail": "auto"}]
    found["image"] = read(create(model=MODEL, input=[{"role": "user", "content": parts}]))
    form = {"format": {"type": "json_schema", "name": "person", "schema": SCHEMA, "strict": True}}
    found["schema"] = json.loads(create(model=MODEL, input=asked, text=form).output_text)
    for name, more in [("errors", {}), ("streamed_errors", {"stream": True})]:
        fail = lambda text: create(model=MODEL, input=text, **more)
        found[name] = failures(fail, lambda error: error.status_code, openai.APIStatusError)
    return found


def messages():
    client = anthropic.Anthropic(base_url=ORIGIN, api_key=KEY, max_retries=0)
    tools = [{"name": n, "description": d, "input_schema": CITY} for n, d in TOOLS]

    def create(**more):
        return client.messages.create(model=MODEL, max_tokens=500, **more)

    def read(message):
        usage = message.usage
        return {
            "text": "".join(block.text for block in message.content if block.type == "text"),
            "calls": [(block.name, block.input) for block in message.content if block.type == "tool_use"],
            "finish": message.stop_reason,
            "usage": [usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens or 0],
        }

    plain = [{"role": "user", "content": "hello wide world"}]
    found = {"plain": read(create(system="be brief", messages=plain))}
    with client.messages.stream(model=MODEL, max_tokens=500, system="be brief", messages=plain) as stream:
        text = "".join(stream.text_stream)
        found["stream"] = {"text": text, "final": read(stream.get_final_message())}
    asked = [{"role": "user", "content": "weather and time?"}]
    first = create(messages=asked, tools=tools)
    found["tools"] = read(first)
    with client.messages.stream(model=MODEL, max_tokens=500, messages=asked, tools=tools) as stream:
        found["streamed_tools"] = read(stream.get_final_message())["calls"]
    bare = [{"name": "ping", "input_schema": NOTHING}]
    with client.messages.stream(model=MODEL, max_tokens=500, messages=asked, tools=bare) as stream:
        found["bare_tool"] = read(stream.get_final_message())["calls"]
    uses = [block for block in first.content if block.type == "tool_use"]
    results = [
        {"type": "tool_result", "tool_use_id": use.id, "content": content}
        for use, content in zip(uses, ["rain", "noon"])
    ]
    history = asked + [
        {"role": "assistant", "content": [use.to_dict() for use in uses]},
        {"role": "user", "content": results},
    ]
    found["results"] = read(create(messages=history, tools=tools))
    forced = {"type": "tool", "name": "get_time"}
    found["forced"] = read(create(messages=asked, tools=tools, tool_choice=forced))
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image", "source": source}]
    found["image"] = read(create(messages=[{"role": "user", "content": parts}]))
    form = {"format": {"type": "json_schema", "schema": SCHEMA}}
    found["schema"] = json.loads(read(create(messages=asked, extra_body={"output_config": form}))["text"])
    for name, more in [("errors", {}), ("streamed_errors", {"stream": True})]:
        fail = lambda text: create(messages=[{"role": "user", "content": text}], **more)
        found[name] = failures(fail, lambda error: error.status_code, anthropic.APIStatusError)
    return found


def gemini():
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=ORIGIN))
    declared = [{"name": n, "description": d, "parameters_json_schema": CITY} for n, d in TOOLS]
    no_loop = {"disable": True}

    def create(contents, **config):
        return client.models.generate_content(
            model=MODEL, contents=contents, config={"automatic_function_calling": no_loop, **config}
        )

    def read(response):
        usage = response.usage_metadata
        parts = response.candidates[0].content.parts or []
        return {
            "text": "".join(part.text for part in parts if part.text and not part.thought),
            "calls": [(part.function_call.name, part.function_call.args) for part in parts if part.function_call],
            "finish": response.candidates[0].finish_reason.name,
            "usage": [
                usage.prompt_token_count,
                usage.candidates_token_count,
                usage.cached_content_token_count or 0,
            ],
        }

    found = {"plain": read(create("hello wide world", system_instruction="be brief"))}
    text, last = "", None
    for chunk in client.models.generate_content_stream(
        model=MODEL, contents="hello wide world", config={"system_instruction": "be brief"}
    ):
        text += chunk.text or ""
        last = chunk
    usage = last.usage_metadata
    found["stream"] = {
        "text": text,
        "finish": last.candidates[0].finish_reason.name,
        "usage": [usage.prompt_token_count, usage.candidates_token_count],
    }
    tools = [{"function_declarations": declared}]
    first = create("weather and time?", tools=tools)
    found["tools"] = read(first)
    bare = [{"function_declarations": [{"name": "ping", "parameters_json_schema": NOTHING}]}]
    for scenario, offered in [("streamed_tools", tools), ("bare_tool", bare)]:
        found[scenario] = []
        for chunk in client.models.generate_content_stream(
            model=MODEL, contents="weather and time?", config={"automatic_function_calling": no_loop, "tools": offered}
        ):
            found[scenario] += [(call.name, call.args) for call in chunk.function_calls or []]
    results = [
        types.Part.from_function_response(name=name, response={"result": result})
        for (name, _), result in zip(TOOLS, ["rain", "noon"])
    ]
    history = [
        types.Content(role="user", parts=[types.Part(text="weather and time?")]),
        first.candidates[0].content,
        types.Content(role="user", parts=results),
    ]
    found["results"] = read(create(history, tools=tools))
    forced = {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["get_time"]}}
    found["forced"] = read(create("weather and time?", tools=tools, tool_config=forced))
    image = types.Part.from_bytes(data=PNG, mime_type="image/png")
    found["image"] = read(create([types.Part(text="what is it?"), image]))
    form = {"response_mime_type": "application/json", "response_json_schema": SCHEMA}
    found["schema"] = json.loads(read(create("weather and time?", **form))["text"])
    stream = lambda text: list(client.models.generate_content_stream(model=MODEL, contents=text))
    for name, fail in [("errors", create), ("streamed_errors", stream)]:
        found[name] = failures(fail, lambda error: error.code, genai_errors.APIError)
    return found


CLIENTS = {
    "chat": chat,
    "embeddings": embeddings,
    "responses": responses,
    "messages": messages,
    "gemini": gemini,
}


def asked(client):
    """What a client reads, or how it fails."""
    try:
        return client()
    except Exception:
        return {"failed": traceback.format_exc()}


found = {}
for MODEL in MODELS.split(","):
    found[MODEL] = {name: asked(CLIENTS[name]) for name in sys.argv[4:] or CLIENTS}
print(json.dumps(found, indent=1, sort_keys=True))
