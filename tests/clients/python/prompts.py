"""Prompts and functions: by slug, by id, at a version, in an environment; pushed; what is not there."""

import sys

import braintrust
import requests
from reading import HEADERS, URL, same

project = f"python-prompts-{sys.argv[1]}"


def called(method, path, status=200, **json):
    answer = requests.request(method, f"{URL}{path}", headers=HEADERS, json=json or None, timeout=60)
    assert answer.status_code == status, f"{method} {path}: {answer.status_code}: {answer.text}"
    return answer.json()


def data(text):
    return {"prompt": {"type": "chat", "messages": [{"role": "user", "content": text}]}, "options": {"model": "m", "params": {"temperature": 0}}}


def built(prompt, **variables):
    return prompt.build(**variables)["messages"][0]["content"]


project_id = called("POST", "/v1/project", name=project)["id"]
made = called("POST", "/v1/prompt", project_id=project_id, name="Greeting", slug="greeting", prompt_data=data("hi {{who}}"), tags=["t"])
first = made["_xact_id"]
called("PATCH", f"/v1/prompt/{made['id']}", prompt_data=data("hello {{who}}"))

prompt = braintrust.load_prompt(project=project, slug="greeting")
same("newest", (built(prompt, who="you"), prompt.name, prompt.slug, prompt.id), ("hello you", "Greeting", "greeting", made["id"]))
same("by id", built(braintrust.load_prompt(id=made["id"]), who="you"), "hello you")
same("at a version", built(braintrust.load_prompt(project=project, slug="greeting", version=first), who="you"), "hi you")
pretty = f"{int(first) * 205891132094649 % 2**64:016x}"
same("in its short form", built(braintrust.load_prompt(project=project, slug="greeting", version=pretty), who="you"), "hi you")

slug = f"production-{sys.argv[1]}"
called("POST", "/environment", name=slug, slug=slug)
called("POST", f"/environment-object/prompt/{made['id']}", object_version=first, environment_slug=slug)
same("in an environment", built(braintrust.load_prompt(project=project, slug="greeting", environment=slug), who="you"), "hi you")
called("PUT", f"/environment-object/prompt/{made['id']}/{slug}", object_version=prompt.version)
same("moved", built(braintrust.load_prompt(project=project, slug="greeting", environment=slug), who="you"), "hello you")

pushed = {"project_id": project_id, "name": "Code", "slug": "code", "function_type": "scorer", "function_data": {"type": "code", "data": {"type": "inline", "runtime_context": {"runtime": "node", "version": "20"}, "code": "1"}}, "if_exists": "replace"}
same("pushed", [one["slug"] for one in called("POST", "/insert-functions", functions=[pushed])["functions"]], ["code"])
same("functions", {one["slug"] for one in called("GET", f"/v1/function?project_name={project}")["objects"]}, {"greeting", "code"})
same("prompts", {one["slug"] for one in called("GET", f"/v1/prompt?project_name={project}")["objects"]}, {"greeting"})

parameters = {"project_id": project_id, "name": "Knobs", "slug": "knobs", "function_data": {"type": "parameters", "data": {"warmth": 3}, "__schema": {"type": "object", "properties": {"warmth": {"type": "number"}}}}}
called("POST", "/v1/function", **parameters)
loaded = braintrust.load_parameters(project=project, slug="knobs")
same("parameters", dict(loaded.data), {"warmth": 3})
try:
    built(braintrust.load_prompt(project=project, slug="nowhere"))
except Exception as error:
    assert "nowhere" in str(error), error
else:
    raise AssertionError("what is not there was loaded")
print("prompts: ok")
