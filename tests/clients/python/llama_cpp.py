"""Asks llama.cpp's server through the official SDKs, and prints what each SDK read as one JSON object.

Usage: llama_cpp.py ORIGIN KEY MODEL EMBEDDING_MODEL [CLIENT...]. ORIGIN is the server or a gateway before it.
"""

import json
import sys
import traceback

import anthropic
import openai
from google import genai
from google.genai import errors as genai_errors
from google.genai import types

ORIGIN, KEY, MODEL, EMBEDDING_MODEL = sys.argv[1:5]
TOKENS = 100
SYSTEM, QUESTION = "be brief", "hello wide world"
TOO_LONG = "word " * 2000
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Oslo"]}},
    "required": ["city"],
    "additionalProperties": False,
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "enum": ["Ann", "Bob"]}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TOOL = "get_weather"


def error_of(call, status, kinds):
    """Kind and status of the error of a prompt that is longer than the context."""
    try:
        call()
        return "no error"
    except kinds as error:
        return [type(error).__name__, status(error)]


def chat():
    client = openai.OpenAI(base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0)

    def create(messages, **more):
        return client.chat.completions.create(
            model=MODEL, messages=messages, max_tokens=TOKENS, **more
        )

    def read(completion):
        message, usage = completion.choices[0].message, completion.usage
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
        return {
            "text": message.content or "",
            "calls": calls,
            "finish": completion.choices[0].finish_reason,
            "usage": [usage.prompt_tokens, usage.completion_tokens],
        }

    asked = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    found = {"plain": read(create(asked))}
    text, finish, usage = "", None, None
    for chunk in create(asked, stream=True, stream_options={"include_usage": True}):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
        usage = chunk.usage or usage
    found["stream"] = {"text": text, "finish": finish, "usage": [usage.prompt_tokens, usage.completion_tokens]}
    tools = [{"type": "function", "function": {"name": TOOL, "parameters": CITY}}]
    first = create(asked, tools=tools, tool_choice="required")
    found["tool"] = read(first)
    call = first.choices[0].message.tool_calls[0]
    history = asked + [
        {"role": "assistant", "content": None, "tool_calls": [call.to_dict()]},
        {"role": "tool", "tool_call_id": call.id, "content": "rain"},
    ]
    found["result"] = read(create(history))
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    found["schema"] = json.loads(read(create(asked, response_format=form))["text"])
    fail = lambda: create([{"role": "user", "content": TOO_LONG}])
    found["error"] = error_of(fail, lambda error: error.status_code, openai.APIStatusError)
    return found


def responses():
    client = openai.OpenAI(base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0)
    common = {"model": MODEL, "max_output_tokens": TOKENS, "instructions": SYSTEM}

    def read(response):
        calls = [(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
        usage = response.usage
        return {"text": response.output_text, "calls": calls, "usage": [usage.input_tokens, usage.output_tokens]}

    found = {"plain": read(client.responses.create(input=QUESTION, **common))}
    # not the helper `stream`, which needs fields that the server leaves out
    events = client.responses.create(input=QUESTION, stream=True, **common)
    found["stream"] = {"text": "".join(event.delta for event in events if event.type == "response.output_text.delta")}
    tools = [{"type": "function", "name": TOOL, "parameters": CITY, "strict": False}]
    found["tool"] = read(client.responses.create(input=QUESTION, tools=tools, tool_choice="required", **common))
    fail = lambda: client.responses.create(input=TOO_LONG, **common)
    found["error"] = error_of(fail, lambda error: error.status_code, openai.APIStatusError)
    return found


def messages():
    client = anthropic.Anthropic(base_url=ORIGIN, api_key=KEY, max_retries=0)
    common = {"model": MODEL, "max_tokens": TOKENS, "system": SYSTEM}
    asked = [{"role": "user", "content": QUESTION}]

    def read(message):
        return {
            "text": "".join(block.text for block in message.content if block.type == "text"),
            "calls": [(block.name, block.input) for block in message.content if block.type == "tool_use"],
            "finish": message.stop_reason,
            "usage": [message.usage.input_tokens, message.usage.output_tokens],
        }

    found = {"plain": read(client.messages.create(messages=asked, **common))}
    with client.messages.stream(messages=asked, **common) as stream:
        text = "".join(stream.text_stream)
        found["stream"] = {"text": text, "finish": stream.get_final_message().stop_reason}
    tools = [{"name": TOOL, "input_schema": CITY}]
    first = client.messages.create(messages=asked, tools=tools, tool_choice={"type": "any"}, **common)
    found["tool"] = read(first)
    use = next(block for block in first.content if block.type == "tool_use")
    history = asked + [
        {"role": "assistant", "content": [use.to_dict()]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "rain"}]},
    ]
    found["result"] = read(client.messages.create(messages=history, **common))
    fail = lambda: client.messages.create(messages=[{"role": "user", "content": TOO_LONG}], **common)
    found["error"] = error_of(fail, lambda error: error.status_code, anthropic.APIStatusError)
    return found


def gemini():
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=ORIGIN))
    common = {"max_output_tokens": TOKENS, "system_instruction": SYSTEM}

    def create(contents, **config):
        return client.models.generate_content(model=MODEL, contents=contents, config={**common, **config})

    def read(response):
        parts, usage = response.candidates[0].content.parts or [], response.usage_metadata
        return {
            "text": "".join(part.text for part in parts if part.text),
            "calls": [(part.function_call.name, part.function_call.args) for part in parts if part.function_call],
            "finish": response.candidates[0].finish_reason.name,
            "usage": [usage.prompt_token_count, usage.candidates_token_count],
        }

    found = {"plain": read(create(QUESTION))}
    chunks = client.models.generate_content_stream(model=MODEL, contents=QUESTION, config=common)
    found["stream"] = {"text": "".join(chunk.text or "" for chunk in chunks)}
    config = {
        "automatic_function_calling": {"disable": True},
        "tools": [{"function_declarations": [{"name": TOOL, "parameters_json_schema": CITY}]}],
        "tool_config": {"function_calling_config": {"mode": "ANY"}},
    }
    found["tool"] = read(create(QUESTION, **config))
    form = {"response_mime_type": "application/json", "response_json_schema": PERSON}
    found["schema"] = json.loads(read(create(QUESTION, **form))["text"])
    found["error"] = error_of(lambda: create(TOO_LONG), lambda error: error.code, genai_errors.APIError)
    return found


def embeddings():
    client = openai.OpenAI(base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0)
    made = client.embeddings.create(model=EMBEDDING_MODEL, input=["a cab", "beef"], encoding_format="float")
    return {"vectors": [one.embedding for one in made.data], "usage": made.usage.prompt_tokens}


CLIENTS = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini, "embeddings": embeddings}


def read_by(client):
    """What a client reads, or how it fails."""
    try:
        return client()
    except Exception:
        return {"failed": traceback.format_exc()}


print(json.dumps({name: read_by(CLIENTS[name]) for name in sys.argv[5:] or CLIENTS}, indent=1, sort_keys=True))
