"""Asks the mock models of LiteLLM's proxy through OpenAI's SDK, and prints what it read as one JSON object.

Usage: model_mocks.py ORIGIN KEY. ORIGIN is the proxy or a gateway before it; the values have to be the same.
"""

import json
import sys

import openai

ORIGIN, KEY = sys.argv[1:3]
SAID = [{"role": "user", "content": "hello"}]
create = openai.OpenAI(base_url=ORIGIN + "/v1", api_key=KEY, max_retries=0).chat.completions.create

plain = create(model="mocked", messages=SAID)
usage = plain.usage
found = {
    "plain": {
        "text": plain.choices[0].message.content,
        "finish": plain.choices[0].finish_reason,
        "usage": [usage.prompt_tokens, usage.completion_tokens],
    }
}
text, finish, usage = "", None, None
for chunk in create(model="mocked", messages=SAID, stream=True, stream_options={"include_usage": True}):
    if chunk.choices:
        text += chunk.choices[0].delta.content or ""
        finish = chunk.choices[0].finish_reason or finish
    usage = chunk.usage or usage
found["stream"] = {"text": text, "finish": finish, "usage": [usage.prompt_tokens, usage.completion_tokens]}
for name, stream in [("error", False), ("streamed_error", True)]:
    try:
        create(model="limited", messages=SAID, stream=stream)
    except openai.APIStatusError as error:
        found[name] = [type(error).__name__, error.status_code]
print(json.dumps(found))
