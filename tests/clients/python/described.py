"""Checks of schemathesis that this server needs beside its own: the path of this file is in SCHEMATHESIS_HOOKS."""

import json
import os
import re
from urllib.parse import urlencode

import requests
import schemathesis
from schemathesis.specs.openapi.checks import RejectedPositiveData, positive_data_acceptance

URL = os.environ["BRAINTRUST_APP_URL"]
HEADERS = {"Authorization": f"Bearer {os.environ['BRAINTRUST_API_KEY']}"}
# A longer request line ends in the HTTP library, before any of the server's own code: 400 with no body (known).
QUERY_BYTES_MAX = 60_000


def fetched(path):
    answer = requests.get(URL + path, headers=HEADERS, timeout=60)
    assert answer.status_code == 200, f"{path}: {answer.status_code}: {answer.text}"
    return answer.json()


def what_the_caller_stands_on():
    """Ids and names that its rights hang on: without them all that followed would be refused, and nothing be tested."""
    groups, keys = (fetched(f"/v1/{kind}")["objects"] for kind in ("group", "api_key"))
    ids = [one["id"] for one in [fetched("/ping"), *groups, *keys, *fetched("/v1/acl/list_org")]]
    assert len(ids) > 3, ids
    return [*ids, *(json.dumps(group["name"]) for group in groups), fetched("/ping")["email"]]


KEPT = what_the_caller_stands_on()


@schemathesis.hook
def filter_case(context, case):
    """Requests that are not made."""
    if case.method == "GET":
        return len(urlencode(case.query or {}, doseq=True)) < QUERY_BYTES_MAX
    said = json.dumps([case.path_parameters, case.query, case.body], default=str, ensure_ascii=False)
    return not any(kept in said for kept in KEPT)


@schemathesis.deserializer("application/x-protobuf")
def bytes_as_they_are(ctx, response):
    """Described as a binary string: of any bytes, and not the text that these would be in some encoding."""
    return response.content.decode("latin-1")


# Refusals of requests that are as the document says, each a rule that a schema of OpenAPI 3.0 cannot have: a pattern of
# the whole message, and the rule. One that nothing here fits is a failure.
RULES = [
    (r"`[\w.]+` and `[\w.]+` exclude each other: send only one of them", "two parameters exclude each other"),
    (r"the list cannot continue from \S+: it never had such a record", "a list continues from one of its records"),
    (r"Invalid cursor: .*", "a cursor is one that the server gave"),
    (r"`metadata` has to be a JSON object", "a parameter is JSON written as a text"),
    (r"`.*` is not a valid email address", "an address has a form"),
    (r"`\w+` (goes with|needs) `\w+`.*", "a field goes with another"),
    (r".*`?: `.*` is not a version: .*", "a text that is a version has a form"),
    (r"`name`: `.*` is a \S+ of the system; choose another name", "a name is given once"),
    (r"the base experiment `.*` is not in this project", "an id is one of something that is there"),
    (r"`\w+` has more than 4096 bytes", "a text has so many bytes"),
    (r"`key` has to be a string of 1 to 256 bytes, such as a UUID", "a text has so many bytes, and no control characters"),
    (r"`x-bt-parent`: .*", "a parent has a form"),
    (r"the spans have no destination: .*", "a field goes with another"),
    (r"the request names no \S+: .*", "of several fields at least one is given"),
    (r"a \S+ with the slug `.*` already exists, and `if_exists` is `error`", "a slug is given once"),
    (r"the request changes nothing: .*", "of several fields at least one is given"),
    (r"`environment` needs a request that matches one \w+, and several match: .*", "how many match depends on what is stored"),
    (r".* names no object: it needs .*", "which fields name an object depends on the other fields"),
    (r".*: the id is not a UUID", "the names of an object's members have a form"),
    (r"(.*: )?no \S+ .* is in the (organization|project .*)", "an id is one of something that is there"),
    (r".*: `id` is missing; a delete names its row", "a field goes with another"),
    (r".* must have exactly one of `\w+` and `\w+`", "of two fields one is given"),
    (r"version \d+ lies in the future; .*", "a version is one that was"),
    (r"`.*`: another .* has `.*`", "a name is given once"),
    (r"(line \d+, column \d+|the query is empty): .*", "a query is written in a language of its own"),
    (r"`x-bt-project-id` has to be the id of a project, which is a UUID", "an id has a form"),
    (r"the organization has no \S+ with the id .*", "an id is one of something that is there"),
    (r"the budget has no limit: .*", "of several fields at least one is given"),
    (r"`config.retention_days` is less than an hour, .*", "a field goes with another"),
    (r"`(logging\.)?parent`: .*", "a parent has a form"),
    (r"a limit of concurrent calls needs the action `reject`", "a field goes with another"),
    (r"`logging.project_name` is missing: .*", "of two fields one is given"),
    (r"send exactly one of `expression`, `tree` and `query`", "of several fields one is given"),
    (r"rows of a dataset have no traces and no scores", "a field goes with another"),
    (r"`filter` has to be one expression, without other clauses", "a query is written in a language of its own"),
    (r"`base` has to be one of `experiments`", "an id is one of those in another field"),
    (r"the score is no rule of online scoring: .*", "it depends on what is stored"),
    (r"the rule is paused: .*", "it depends on what is stored"),
    (r"`score_type` is .*; it must be `online`, as `config.online` is set", "a field goes with another"),
    (r"`config(\.online.*)?` is .*", "a rule of online scoring has a configuration, with a filter and functions that there are"),
    (r"`(filter|to)` is .*; it must be .*", "a query is written in a language of its own, and one time is after another"),
    (r"`version` differs from the version of the page with this cursor", "a cursor goes with a version"),
    (r"the request line and headers have \d+ bytes; the maximum is \d+", "all parameters together have a size"),
]
# Where it is, stands before what it is.
PLACE = r"(`?[^`]*`?: )?"
# Paths of OpenTelemetry, each under both its names.
EXPORTS = [f"{root}/v1/{signal}" for root in ("/otel", "") for signal in ("traces", "logs", "metrics")]
# Paths of model clients. Their bodies are those of model APIs, which the document does not describe, and so are their errors.
MODEL_API = re.compile(r"/gateway/.*|/v1/proxy/.*|/v1beta/models.*|/v1/(chat/|completions|embeddings|messages|models|moderations|responses).*")
EVALUATIONS = ["/v1/eval", "/function/eval", "/v1/eval/remote-list", "/function/sandbox-list"]
# Statuses that say nothing about the request's form: it is too large as a whole, or what it asks for is gone.
WHOLE = (410, 413, 431)


@schemathesis.check
def refused_by_a_rule(ctx, response, case):
    """What the document allows is accepted, or refused by a rule that it cannot say."""
    try:
        return positive_data_acceptance(ctx, response, case)
    except RejectedPositiveData:
        if response.status_code in WHOLE:
            return None
        if response.headers.get("content-type", [""])[0].startswith("text/plain"):
            said = response.text
            if response.status_code == 400 and any(re.fullmatch(PLACE + rule, said, re.DOTALL) for rule, _ in RULES):
                return None
            raise
        body = response.json()
        is_error = response.status_code == 400 and isinstance(body, dict) and isinstance(body.get("error"), dict)
        if is_error and MODEL_API.fullmatch(case.path) and body["error"].get("message"):
            return None
        # Whether a stored function runs depends on what is stored: its model, its templates, its schema.
        if response.status_code == 400 and case.path.endswith("/invoke") and isinstance(body.get("Message"), str):
            return None
        # An evaluation names one source of data and functions in one form each, and all of them have to exist.
        if response.status_code == 400 and case.path in EVALUATIONS and isinstance(body.get("Message"), str):
            return None
        # Bytes that are no message of protobuf: what a schema says of them is that they are bytes.
        if response.status_code == 400 and case.path in EXPORTS and isinstance(body, str):
            return None
        said = body.get("Message") or body.get("message", "")
        if response.status_code == 400 and any(re.fullmatch(PLACE + rule, said, re.DOTALL) for rule, _ in RULES):
            return None
        raise
