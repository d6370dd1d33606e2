"""Builds prompts by the SDK: reads a file of slugs and variables, and writes what each became to another."""

import json
import sys

import braintrust

project, given, written = sys.argv[1:]
with open(given, encoding="utf-8") as file:
    cases = json.load(file)


def built(slug, variables):
    try:
        request = dict(braintrust.load_prompt(project=project, slug=slug, no_trace=True).build(**variables))
        return json.loads(json.dumps(request))
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


with open(written, "w", encoding="utf-8") as file:
    json.dump([built(case["slug"], case["variables"]) for case in cases], file)
