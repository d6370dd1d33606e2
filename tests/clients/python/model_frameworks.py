"""Asks a model through frameworks that speak to providers' APIs, and prints what each read as one JSON object.

Usage: model_frameworks.py ORIGIN KEY MODEL[,MODEL...] [CLIENT...]. ORIGIN is a scripted provider or a gateway before
one; the values have to be the same.
"""

import json
import os
import sys
import traceback

# LiteLLM would fetch prices at its import.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

ORIGIN, KEY, MODELS = sys.argv[1:4]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": description, "parameters": CITY}}
    for name, description in [("get_weather", "The weather of a city"), ("get_time", "The time in a city")]
]
RESULTS = ["rain", "noon"]
SCHEMA = {
    "title": "person",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PLAIN = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello wide world"}]
ASKED = [{"role": "user", "content": "weather and time?"}]
SHOWN = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "what is it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}},
        ],
    }
]
BARE = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}]
STATUSES = [400, 404, 429, 500, 503]
FORM = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}}
FORCED = {"type": "function", "function": {"name": "get_time"}}


def failures(call):
    """Kind and status of the error that each of some statuses is for the caller."""
    found = []
    for status in STATUSES:
        try:
            call([{"role": "user", "content": f"fail {status}"}])
            found.append("no error")
        except Exception as error:
            found.append([type(error).__name__, getattr(error, "status_code", None)])
    return found


def of_chat(create):
    """Scenarios of a client that takes and returns what chat completions do."""

    def calls(message):
        return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]

    def read(completion):
        usage, message = completion.usage, completion.choices[0].message
        details = usage.prompt_tokens_details
        return {
            "text": message.content or "",
            "calls": calls(message),
            "finish": completion.choices[0].finish_reason,
            "usage": [usage.prompt_tokens, usage.completion_tokens, (details and details.cached_tokens) or 0],
        }

    found = {"plain": read(create(messages=PLAIN))}
    text, finish, usage = "", None, None
    for chunk in create(messages=PLAIN, stream=True, stream_options={"include_usage": True}):
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
            finish = chunk.choices[0].finish_reason or finish
        usage = getattr(chunk, "usage", None) or usage
    found["stream"] = {"text": text, "finish": finish, "usage": [usage.prompt_tokens, usage.completion_tokens]}
    first = create(messages=ASKED, tools=TOOLS)
    found["tools"] = read(first)
    for scenario, tools in [("streamed_tools", TOOLS), ("bare_tool", BARE)]:
        pieces = {}
        for chunk in create(messages=ASKED, tools=tools, stream=True):
            for call in (chunk.choices[0].delta.tool_calls if chunk.choices else None) or []:
                piece = pieces.setdefault(call.index, ["", ""])
                piece[0] += call.function.name or ""
                piece[1] += call.function.arguments or ""
        found[scenario] = [(name, json.loads(arguments)) for name, arguments in pieces.values()]
    message = first.choices[0].message
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": content}
        for call, content in zip(message.tool_calls, RESULTS)
    ]
    found["results"] = read(create(messages=ASKED + [message.model_dump(exclude_none=True)] + results, tools=TOOLS))
    found["forced"] = read(create(messages=ASKED, tools=TOOLS, tool_choice=FORCED))
    found["image"] = read(create(messages=SHOWN))
    found["schema"] = json.loads(create(messages=ASKED, response_format=FORM).choices[0].message.content)
    found["errors"] = failures(lambda messages: create(messages=messages))
    found["streamed_errors"] = failures(lambda messages: list(create(messages=messages, stream=True)))
    return found


def braintrust_wrapped():
    import braintrust
    import openai

    client = braintrust.wrap_openai(openai.OpenAI(base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0))
    return of_chat(lambda **more: client.chat.completions.create(model=MODEL, **more))


def litellm_sdk(provider, base):
    import litellm

    litellm.suppress_debug_info = True
    at = {"model": f"{provider}/{MODEL}", "api_base": ORIGIN + base, "api_key": KEY, "num_retries": 0, "max_retries": 0}
    return of_chat(lambda **more: litellm.completion(**at, **more))


def litellm_embeddings():
    import litellm

    made = litellm.embedding(
        model=f"openai/{MODEL}",
        input=["a cab", "beef"],
        api_base=ORIGIN + "/v1",
        api_key=KEY,
        encoding_format="float",
        max_retries=0,
    )
    return {"vectors": [one["embedding"] for one in made.data], "usage": made.usage.prompt_tokens}


def langchain(**more):
    from langchain_core.messages import ToolMessage
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0, stream_usage=True, **more)

    def read(message):
        usage, metadata = message.usage_metadata, message.response_metadata
        return {
            "text": message.text,
            "calls": [(call["name"], call["args"]) for call in message.tool_calls],
            "finish": metadata.get("finish_reason") or metadata.get("status"),
            "usage": [
                usage["input_tokens"],
                usage["output_tokens"],
                usage.get("input_token_details", {}).get("cache_read") or 0,
            ],
        }

    def streamed(model, messages):
        whole = None
        for chunk in model.stream(messages):
            whole = chunk if whole is None else whole + chunk
        return whole

    found = {"plain": read(model.invoke(PLAIN)), "stream": read(streamed(model, PLAIN))}
    with_tools = model.bind_tools(TOOLS)
    first = with_tools.invoke(ASKED)
    found["tools"] = read(first)
    found["streamed_tools"] = read(streamed(with_tools, ASKED))["calls"]
    found["bare_tool"] = read(streamed(model.bind_tools(BARE), ASKED))["calls"]
    results = [ToolMessage(content, tool_call_id=call["id"]) for call, content in zip(first.tool_calls, RESULTS)]
    found["results"] = read(with_tools.invoke([*ASKED, first, *results]))
    found["forced"] = read(model.bind_tools(TOOLS, tool_choice="get_time").invoke(ASKED))
    found["image"] = read(model.invoke(SHOWN))
    found["schema"] = model.with_structured_output(SCHEMA, method="json_schema", strict=True).invoke(ASKED)
    found["errors"] = failures(model.invoke)
    found["streamed_errors"] = failures(lambda messages: list(model.stream(messages)))
    return found


def langchain_embeddings():
    from langchain_openai import OpenAIEmbeddings

    made = OpenAIEmbeddings(
        model=MODEL, base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0, check_embedding_ctx_length=False
    )
    # the texts themselves: counting their tokens would fetch a tokenizer; this client asks for base64 of 32-bit numbers
    vectors = made.embed_documents(["a cab", "beef"])
    return {"vectors": [[round(number, 6) for number in vector] for vector in vectors]}


CLIENTS = {
    "braintrust": braintrust_wrapped,
    "litellm_openai": lambda: litellm_sdk("openai", "/v1"),
    "litellm_anthropic": lambda: litellm_sdk("anthropic", ""),
    "litellm_embeddings": litellm_embeddings,
    "langchain_chat": langchain,
    "langchain_responses": lambda: langchain(use_responses_api=True),
    "langchain_embeddings": langchain_embeddings,
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
