"""Prompts: pushed, changed, and loaded by slug, by id, at a version and as an environment has them; parameters beside them."""

import sys

import braintrust
from braintrust.logger import get_prompt_versions
from reading import ask, same

project = f"python-prompts-{sys.argv[1]}"


def push(text, if_exists=None, slug="greeting", **more):
    pushing = braintrust.projects.create(name=project)
    pushing.prompts.create(
        name="Greeting",
        slug=slug,
        messages=[{"role": "system", "content": text}, {"role": "user", "content": "I am {{name}}, {{{raw}}}"}],
        model="m-1",
        params={"temperature": 0.25, "max_tokens": 7},
        if_exists=if_exists,
        **more,
    )
    return pushing.publish()["functions"]


def loaded(**more):
    by = {} if "id" in more else {"project": project, "slug": "greeting"}
    return braintrust.load_prompt(**by, **more)


def says(prompt):
    return prompt.build(name="Ann", raw="<b>")["messages"][0]["content"]


[made] = push("one", description="d", metadata={"m": {"a": 1}}, tags=["t"])
same("its slug", made["slug"], "greeting")
first = loaded()
same("its id", first.id, made["id"])
same("its fields", (first.name, first.slug), ("Greeting", "greeting"))
built = first.build(name="Ann", raw="<b>")
same("built", built["messages"], [{"role": "system", "content": "one"}, {"role": "user", "content": "I am Ann, <b>"}])
same("its options", (built["model"], built["temperature"], built["max_tokens"]), ("m-1", 0.25, 7))
same("where it is from", built["span_info"]["metadata"]["prompt"]["id"], made["id"])
assert len(first.version) == 19, first.version

# Pushed again: refused, left as it is, or replaced.
try:
    push("refused", "error")
    raise AssertionError("a slug was taken twice")
except Exception as error:
    assert "greeting" in str(error), error
same("after a refusal", (says(loaded()), loaded().version), ("one", first.version))
push("ignored", "ignore")
same("ignored", (says(loaded()), loaded().version), ("one", first.version))
[replaced] = push("two", "replace", description="d")
second = loaded()
same("replaced", (says(second), second.id, replaced["id"]), ("two", made["id"], made["id"]))
assert second.version > first.version, (second.version, first.version)
ask("PATCH", f"/v1/prompt/{made['id']}", description="patched", prompt_data={"prompt": {"type": "completion", "content": "three {{name}}"}, "options": {"model": "m-3"}})
third = loaded()
same("patched", (third.build(name="Ann")["prompt"], third.build(name="Ann")["model"]), ("three Ann", "m-3"))
assert third.version > second.version, (third.version, second.version)

# Each version, by slug and by id, and by the shorter form of its number.
for prompt, text in ((first, "one"), (second, "two")):
    pretty = f"{int(prompt.version) * 205891132094649 % 2**64:016x}"
    for version in (prompt.version, pretty):
        for by in ({}, {"id": made["id"]}):
            found = loaded(version=version, **by)
            same(f"at {version}", (says(found), found.version), (text, prompt.version))
same("by id", loaded(id=made["id"]).version, third.version)
project_id = ask("POST", "/v1/project", name=project)["id"]
pretty = [f"{int(prompt.version) * 205891132094649 % 2**64:016x}" for prompt in (first, second, third)]
same("its versions", sorted(get_prompt_versions(project_id, made["id"])), sorted(pretty))

# As environments have it: each its own version, moved to another one.
for name in ("staging", "production"):
    ask("POST", "/environment", name=name, slug=f"{project}-{name}")
    ask("PUT", f"/environment-object/prompt/{made['id']}/{project}-{name}", object_version=first.version if name == "production" else second.version)
for name, text, prompt in (("production", "one", first), ("staging", "two", second)):
    for by in ({}, {"id": made["id"]}):
        found = loaded(environment=f"{project}-{name}", **by)
        same(f"in {name}", (says(found), found.version), (text, prompt.version))
ask("PUT", f"/environment-object/prompt/{made['id']}/{project}-production", object_version=second.version)
same("moved", loaded(environment=f"{project}-production").version, second.version)
# A version comes before an environment.
same("both", loaded(environment=f"{project}-staging", version=first.version).version, first.version)

# What is not there is said to be not there, and not a failing of the server.
for missing in ({"slug": "none"}, {"slug": "greeting", "environment": f"{project}-none"}, {"slug": "greeting", "version": "1000000000000000001"}):
    try:
        version = braintrust.load_prompt(project=project, **missing).version
    except ValueError as error:
        same("missing", str(error), f"Prompt {missing['slug']} not found in project {project}.")
    else:
        raise AssertionError(f"{missing} is at {version}")

# Under a logger a span carries which prompt was used.
logger = braintrust.init_logger(project=project)
with logger.start_span(name="asked", **second.build(name="Ann", raw="")["span_info"]) as span:
    pass
logger.flush()
row = ask("POST", f"/v1/project_logs/{project_id}/fetch", limit=10)["events"][0]
same("the prompt of a span", (row["metadata"]["prompt"]["id"], row["metadata"]["prompt"]["version"]), (made["id"], second.version))

# Parameters are in the same list of slugs.
pushing = braintrust.projects.create(name=project)
pushing.parameters.create(name="Knobs", slug="knobs", schema={"depth": {"type": "model", "default": "m-9", "description": "d"}})
[knobs] = pushing.publish()["functions"]
parameters = braintrust.load_parameters(project=project, slug="knobs")
same("parameters", (parameters.id, parameters.data, parameters.slug), (knobs["id"], {"depth": "m-9"}, "knobs"))
print("prompts: ok")
