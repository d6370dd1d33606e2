"""Trace that a scorer reads, over the API of the server with the credential of the call."""

import http.client
import json
import os
from urllib.parse import urlsplit

# Spans of one page of a query.
PAGE_SPANS = 1000
# Upper bound of the spans that one trace may have here.
TRACE_SPANS_MAX = 100_000
FILTERS = ("span_type", "name", "has_error", "metadata", "duration")
TIMEOUT_SECONDS = 60


class Listed(list):
    """List that may also be awaited, for handlers with and without `async`."""

    def __await__(self):
        return self
        yield


class Span(dict):
    """Span whose members are also attributes. Absent ones are None."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)


class Trace(dict):
    """Spans and thread of one trace. As JSON it is a reference to the trace."""

    def __init__(self, reference, parent):
        names = ("object_type", "object_id", "root_span_id")
        super().__init__(trace_ref={name: reference.get(name) for name in names})
        self._parent = parent
        self._spans = {}
        self._threads = {}

    def get_configuration(self):
        return dict(self["trace_ref"])

    def get_spans(self, span_type=None, *, filters=None, include_scorers=False):
        wanted = dict(filters or {})
        if span_type:
            wanted["span_type"] = [span_type] if isinstance(span_type, str) else span_type
        unknown = [name for name in wanted if name not in FILTERS]
        if unknown:
            raise ValueError(f"unknown filter of spans: {unknown[0]}; {', '.join(FILTERS)} are valid")
        if include_scorers not in self._spans:
            self._spans[include_scorers] = self._query(include_scorers)
        return Listed(Span(span) for span in self._spans[include_scorers] if _matches(span, wanted))

    def get_thread(self, options=None):
        name = (options or {}).get("preprocessor") or "project_default"
        if name not in self._threads:
            body = {"global_function": name, "function_type": "preprocessor", "input": dict(self), "mode": "json"}
            if self._parent:
                body["parent"] = self._parent
            messages = _post("/function/invoke", body)
            self._threads[name] = messages if isinstance(messages, list) else []
        return Listed(self._threads[name])

    def _query(self, include_scorers):
        trace, purpose = self["trace_ref"], _ident("span_attributes", "purpose")
        conditions = [{"op": "eq", "left": _ident("root_span_id"), "right": _literal(trace["root_span_id"])}]
        if not include_scorers:
            is_other = {"op": "ne", "left": purpose, "right": _literal("scorer")}
            conditions.append({"op": "or", "children": [{"op": "isnull", "expr": purpose}, is_other]})
        source = {"op": "function", "name": _ident(trace["object_type"]), "args": [_literal(trace["object_id"])]}
        query = {
            "select": [{"op": "star"}],
            "from": source,
            "filter": {"op": "and", "children": conditions},
            "limit": PAGE_SPANS,
        }
        spans = []
        while True:
            page = _post("/btql", {"query": query, "fmt": "json"})
            spans += page["data"]
            if len(spans) > TRACE_SPANS_MAX:
                raise ValueError(f"the trace has more than {TRACE_SPANS_MAX} spans")
            if not page["data"] or not page.get("cursor"):
                return spans
            query = {**query, "cursor": page["cursor"]}


def _ident(*path):
    return {"op": "ident", "name": list(path)}


def _literal(value):
    return {"op": "literal", "value": value}


def _matches(span, wanted):
    attributes, metrics = span.get("span_attributes") or {}, span.get("metrics") or {}
    if "span_type" in wanted and attributes.get("type") not in wanted["span_type"]:
        return False
    if "name" in wanted and attributes.get("name") not in wanted["name"]:
        return False
    if "has_error" in wanted and (span.get("error") is not None) != wanted["has_error"]:
        return False
    if "metadata" in wanted and not _contains(span.get("metadata"), wanted["metadata"]):
        return False
    bounds = wanted.get("duration")
    if not bounds:
        return True
    start, end = metrics.get("start"), metrics.get("end")
    if not isinstance(start, (int, float)) or not isinstance(end, (int, float)):
        return False
    return bounds.get("min", float("-inf")) <= end - start <= bounds.get("max", float("inf"))


def _contains(value, wanted):
    """Whether all members of `wanted`, at any depth, are in `value`."""
    if isinstance(wanted, dict):
        return all(_contains(value.get(key) if isinstance(value, dict) else None, wanted[key]) for key in wanted)
    return type(value) is type(wanted) and value == wanted


def _post(path, body):
    url, key = os.environ.get("BRAINTRUST_API_URL"), os.environ.get("BRAINTRUST_API_KEY")
    if not url or not key:
        raise RuntimeError("a trace can only be read with BRAINTRUST_API_URL and BRAINTRUST_API_KEY")
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=TIMEOUT_SECONDS)
    try:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        connection.request("POST", parts.path.rstrip("/") + path, json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    if response.status >= 300:
        raise RuntimeError(f"the server answered {response.status} to POST {path}: {text}")
    return json.loads(text)
