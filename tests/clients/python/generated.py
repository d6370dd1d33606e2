"""Clients that were generated from the API's document: every method of every resource is called once, and what it gives back is
of the type that it says. A method that nobody calls is a failure, and so is one that is refused and is not listed with its
status in `not_served.json`, or is listed and answers."""

import importlib
import inspect
import json
import os
import pathlib
import sys

import braintrust_api
import requests
from braintrust.api.client import BraintrustOpenApiClient
from braintrust.api.errors import BraintrustAPIError

URL = os.environ["BRAINTRUST_APP_URL"]
KEY = os.environ["BRAINTRUST_API_KEY"]
TOKEN = os.environ["ASSAY_SERVICE_TOKEN"]
NOT_SERVED = json.loads((pathlib.Path(__file__).parent / "not_served.json").read_text())
# Its schema has fewer words for what a role is restricted to than the API: roles of the system are not as it says.
LENIENT = ("roles.list",)
EVENT = {"id": "row", "input": {"q": 1}}


def http(method, path, body=None, key=KEY):
    answer = requests.request(method, URL + path, headers={"Authorization": f"Bearer {key}"}, json=body, timeout=60)
    assert answer.status_code == 200, f"{method} {path} {body}: {answer.status_code} {answer.text}"
    return answer.json()


class World:
    """One of each that others are in, and new ones of each kind."""

    def __init__(self):
        self.count = 0
        who = http("GET", "/ping")
        self.user, self.org, self.org_name = who["id"], who["org_id"], who["org_name"]
        self.account = http("POST", "/api/self/me", key=TOKEN)["id"]
        self.project = self.made("project")
        self.experiment, self.dataset, self.group, self.role, self.prompt = map(
            self.made, ["experiment", "dataset", "group", "role", "prompt"]
        )
        http("POST", f"/v1/dataset/{self.dataset}/insert", {"events": [EVENT]})
        http("POST", f"/v1/experiment/{self.experiment}/insert", {"events": [EVENT]})
        http("POST", f"/v1/project_logs/{self.project}/insert", {"events": [EVENT]})

    def name(self):
        self.count += 1
        return f"{sys.argv[1]}-{self.count}"

    def body(self, kind):
        return BODIES[kind](self)

    def made(self, kind):
        """The id of a new one."""
        if kind in ("user", "organization"):
            return {"user": self.user, "organization": self.org}[kind]
        if kind == "simulated_user":
            return http("POST", f"/v1/project/{self.project}/simulated_user", self.body(kind))["id"]
        path = "/environment" if kind == "environment" else f"/v1/{kind}"
        key = TOKEN if kind == "service_token" else KEY
        return http("POST", path, self.body(kind), key=key)["id"]


def named(world, **more):
    return {"name": world.name(), **more}


def in_project(world, **more):
    return named(world, project_id=world.project, **more)


def with_slug(world, **more):
    return in_project(world, slug=world.name(), **more)


RETENTION = {"event_type": "retention", "object_type": "experiment", "retention_days": 36500}
PROMPT = {"prompt": {"type": "chat", "messages": [{"role": "user", "content": "Hello"}]}, "options": {"model": "m"}}
CODE = {"type": "prompt"}
BODIES = {
    "project": named,
    "experiment": in_project,
    "dataset": in_project,
    "prompt": lambda w: with_slug(w, prompt_data=PROMPT),
    "function": lambda w: with_slug(w, prompt_data=PROMPT, function_data=CODE),
    "agent": with_slug,
    "dataset_snapshot": lambda w: named(w, dataset_id=w.dataset, xact_id="1000192656880881099"),
    "environment": lambda w: named(w, slug=w.name()),
    "role": lambda w: named(w, member_permissions=[{"permission": "read"}]),
    "group": lambda w: named(w, member_users=[w.user]),
    "acl": lambda w: {"object_type": "project", "object_id": w.made("project"), "group_id": w.group, "permission": "read"},
    "api_key": named,
    "service_token": lambda w: named(w, service_account_id=w.account),
    "ai_secret": lambda w: named(w, type="openai", secret="not much of a secret"),
    "env_var": lambda w: named(w, object_type="project", object_id=w.project, value="v"),
    "mcp_server": lambda w: in_project(w, url="https://example.com/mcp"),
    "project_score": lambda w: in_project(w, score_type="slider"),
    "project_tag": lambda w: in_project(w, color="red"),
    "project_automation": lambda w: in_project(w, config=RETENTION),
    "org_automation": lambda w: named(w, org_id=w.org, config=RETENTION),
    "project_group": named,
    "simulated_user": lambda w: named(w, instructions="You are in a hurry.", voice_config={"voice_id": "x"}),
    "span_iframe": lambda w: in_project(w, url="https://example.com/span"),
    "view": lambda w: named(w, object_type="project", object_id=w.project, view_type="logs"),
}
OF_VIEW = lambda w: {"object_type": "project", "object_id": w.project}
CHANGES = {
    "env_var": lambda w: {"name": w.name()},
    "view": OF_VIEW,
    "environment": lambda w: {"name": w.name()},
    "group": lambda w: {"description": "d", "add_member_users": [w.user]},
    "project_group": lambda w: {"add_member_projects": [w.project]},
    "role": lambda w: {"add_member_permissions": [{"permission": "update"}]},
    "project_score": lambda w: {"description": "d"},
}
LISTS = {"acl": OF_VIEW, "view": OF_VIEW}
FEEDBACK = [{"id": "row", "comment": "well done", "source": "api"}]
INVITED = {"invite_users": {"emails": ["ann@example.com"]}}
EVAL = lambda w: {"project_id": w.project, "data": {"dataset_id": w.dataset}, "task": {"function_id": scorer(w)}, "scores": []}


def of_acl(world):
    body = world.body("acl")
    http("POST", "/v1/acl", body)
    return body


def of_secret(world):
    body = world.body("ai_secret")
    http("POST", "/v1/ai_secret", body)
    return {"name": body["name"]}


def scorer(world):
    """The id of a function that runs without a model."""
    exact = {"type": "global", "name": "ExactMatch", "function_type": "scorer"}
    return http("POST", "/v1/function", with_slug(world, function_data=exact))["id"]


# What no rule below says: positional arguments, and named ones.
SPECIAL = {
    "top_level.hello_world": lambda w: ([], {}),
    "acls.batch_update": lambda w: ([], {"add_acls": [w.body("acl")]}),
    "acls.find_and_delete": lambda w: ([], of_acl(w)),
    "ai_secrets.find_and_delete": lambda w: ([], of_secret(w)),
    "evals.create": lambda w: ([], EVAL(w)),
    # Functions of other scripts may have types that this package does not know.
    "functions.list": lambda w: ([], {"project_name": http("GET", f"/v1/project/{w.project}")["name"]}),
    "functions.invoke": lambda w: ([scorer(w)], {"input": {"output": "a", "expected": "a"}}),
    "organizations.members.update": lambda w: ([], INVITED),
    "organizations.update": lambda w: ([w.org], {"is_universal_api": True}),
    **{
        f"{path}.{method}": lambda w, of=of, said=said: ([getattr(w, of)], said)
        for path, of in {"experiments": "experiment", "datasets": "dataset", "projects.logs": "project"}.items()
        for method, said in {
            "insert": {"events": [EVENT]},
            "feedback": {"feedback": FEEDBACK},
            "fetch": {"limit": 10},
            "fetch_post": {"limit": 10},
        }.items()
    },
    "experiments.summarize": lambda w: ([w.experiment], {"summarize_scores": True}),
    "datasets.summarize": lambda w: ([w.dataset], {"summarize_data": True}),
}


def arguments(name, world):
    """How a method of the package `braintrust_api` is called."""
    if name in SPECIAL:
        return SPECIAL[name](world)
    resource, method = name.split(".")
    kind = {"api_keys": "api_key"}.get(resource, resource.removesuffix("s"))
    if method in ("create", "replace"):
        return [], world.body(kind)
    if method == "list":
        return [], LISTS.get(kind, lambda _: {})(world)
    of = OF_VIEW(world) if kind == "view" else {}
    if method in ("retrieve", "delete"):
        return [world.made(kind)], of
    if method == "update":
        return [world.made(kind)], CHANGES.get(kind, lambda w: {} if kind in NAMELESS else {"name": w.name()})(world)
    raise KeyError(name)


NAMELESS = ("organization",)


def methods(client):
    """Every method of every resource, under its path."""

    def below(resource, path):
        for name in dir(resource):
            if name.startswith(("_", "with_")):
                continue
            found = getattr(resource, name)
            if str(type(found).__name__).endswith("Resource"):
                yield from below(found, path + [name])
            elif path and inspect.ismethod(found):
                yield ".".join(path + [name]), found

    yield from below(client, [])


def package(world, judge):
    lenient, strict = (
        braintrust_api.Braintrust(api_key=KEY, base_url=URL, max_retries=0, _strict_response_validation=strict)
        for strict in (False, True)
    )
    unchecked = dict(methods(lenient))
    for name, method in methods(strict):
        place = f"braintrust_api {name}"
        method = unchecked[name] if name in LENIENT else method
        try:
            positional, keywords = arguments(name, world)
            answer = method(*positional, **keywords)
            if not isinstance(answer, str | dict):
                list(answer) if hasattr(answer, "objects") else answer.model_dump()
            judge(place, None)
        except braintrust_api.APIStatusError as error:
            judge(place, error.status_code, error)
        except Exception as error:
            judge(place, 0, f"{error!r}, caused by {error.__cause__!r}")


# Of the SDK's own client: names that do not say what they do.
OWN = {
    "acl_batch_update": lambda w: {"body": {"add_acls": [w.body("acl")]}},
    "acl_list_org": lambda w: {},
    "delete_acl": lambda w: {"body": of_acl(w)},
    "delete_ai_secret": lambda w: {"body": of_secret(w)},
    "delete_service_token": lambda w: {"body": {"id": w.made("service_token")}},
    "create_environment": lambda w: {"body": w.body("environment")},
    "delete_environment": lambda w: {"environment_id": w.made("environment")},
    "get_environment": lambda w: {"environment_id": w.made("environment")},
    "list_environments": lambda w: {},
    "update_environment": lambda w: {"environment_id": w.made("environment"), "body": CHANGES["environment"](w)},
    "create_simulated_user": lambda w: {"project_id": w.project, "body": w.body("simulated_user")},
    "delete_simulated_user": lambda w: {"project_id": w.project, "id": w.made("simulated_user")},
    "get_simulated_user": lambda w: {"project_id": w.project, "id": w.made("simulated_user")},
    "list_simulated_users": lambda w: {"project_id": w.project},
    "patch_simulated_user": lambda w: {"project_id": w.project, "id": w.made("simulated_user"), "body": {"goal": "g"}},
    "patch_organization_members": lambda w: {"body": INVITED},
    "patch_organization_id": lambda w: {"organization_id": w.org, "body": {"is_universal_api": True}},
    "get_organization_api_keys": lambda w: {},
    **{
        f"{method}_id_{what}": lambda w, of=method.split("_")[1], said=said: {f"{of}_id": getattr(w, of), **said}
        for method, what, said in [
            (f"{verb}_{of}", what, said)
            for of in ("experiment", "dataset")
            for verb, what, said in [
                ("get", "fetch", {"limit": 10}),
                ("get", "summarize", {}),
                ("post", "fetch", {"body": {"limit": 10}}),
                ("post", "insert", {"body": {"events": [EVENT]}}),
                ("post", "feedback", {"body": {"feedback": FEEDBACK}}),
            ]
        ]
    },
}


def own_arguments(name, world):
    """How a method of the SDK's own client is called."""
    if name in OWN:
        return OWN[name](world)
    verb, _, rest = name.partition("_")
    kind = rest.removesuffix("_id")
    if kind == rest:
        if verb == "get":
            return LISTS.get(kind, lambda _: {})(world)
        return {"body": world.body(kind)}
    said = {f"{kind}_id": world.made(kind)}
    if kind == "view":
        return {**said, **({"body": OF_VIEW(world)} if verb in ("patch", "delete") else OF_VIEW(world))}
    if verb == "patch":
        said["body"] = CHANGES.get(kind, lambda w: {"name": w.name()})(world)
    return said


def missing(resource, method, answer):
    """The fields that the type of the answer requires, and that are not in it."""
    module = importlib.import_module(f"braintrust.api._generated.models.{resource}")
    kind = getattr(module, str(inspect.signature(method).return_annotation).strip("'\""), None)
    required = getattr(kind, "__required_keys__", frozenset())
    return sorted(field for field in required if field not in answer)


def own_client(world, judge):
    clients = {key: BraintrustOpenApiClient(api_key=key, api_url=URL) for key in (KEY, TOKEN)}
    resources = [name for name, found in inspect.getmembers(BraintrustOpenApiClient) if isinstance(found, property)]
    for resource in resources:
        service = getattr(clients[TOKEN if resource == "service_tokens" else KEY], resource)
        for name, method in inspect.getmembers(service, inspect.ismethod):
            if name.startswith("_") or name == "execute":
                continue
            place = f"braintrust.api {resource}.{name}"
            try:
                answer = method(**own_arguments(name, world))
                left_out = missing(resource, method, answer)
                judge(place, 0 if left_out else None, f"the answer lacks {left_out}: {answer}")
            except BraintrustAPIError as error:
                judge(place, getattr(error, "status_code", 0) or 0, error)
            except Exception as error:
                judge(place, 0, f"{error!r}, caused by {error.__cause__!r}")


def main():
    world, called, failed = World(), set(), []

    def judge(name, status, why=None):
        """None is a success; 0 is an answer that is not as it should be."""
        called.add(name)
        listed = NOT_SERVED.get(name, {}).get("status")
        if status is None and listed:
            failed.append(f"{name}: is listed as not served, and answers")
        elif status != listed:
            failed.append(f"{name}: {status}: {why}")

    package(world, judge)
    own_client(world, judge)
    failed += [f"{name}: is listed and is no method" for name in NOT_SERVED if name not in called]
    failed += [f"{name}: has no reason" for name, listed in NOT_SERVED.items() if not listed["why"]]
    print(f"{len(called)} methods")
    if failed:
        sys.exit("\n".join(failed))


main()
