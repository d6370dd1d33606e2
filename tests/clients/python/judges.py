"""Judges of autoevals and of the server, both before one scripted provider: prints what each answered, in pairs."""

import json
import sys

import autoevals
import requests
from openai import OpenAI

provider, url, key = sys.argv[1:]
MODEL = "scripted"
client = OpenAI(base_url=f"{provider}/v1", api_key="key", max_retries=0)

CHOICES = {
    "Factuality": "ABCDE",
    "Battle": ("Yes", "No"),
    "ClosedQA": "YN",
    "Humor": ("Yes", "No", "Unsure"),
    "Possible": "AB",
    "Security": ("Yes", "No", "Unsure"),
    "Sql": ("Correct", "Incorrect"),
    "Summary": "AB",
    "Translation": "YN",
}
# Not letters of the alphabet in their order.
OWN_SCORES = {"zebra": 0.25, "ape": 1, "no idea": 0}
OWN_TEMPLATE = "Which animal is {{output}}? {{input}}\n"


def arguments(choice):
    """What a judge is asked about. The provider chooses what the output names."""
    given = {"input": "what is <1 + 1>?", "expected": "two", "output": f"2 & more [choose {choice}]"}
    return {**given, "criteria": "is exact", "instructions": "count", "language": "French"}


def ours(**function):
    answer = requests.post(f"{url}/function/invoke", headers={"Authorization": f"Bearer {key}"}, json=function, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def theirs(scorer, given):
    score = scorer.eval(**given)
    return {"name": score.name, "score": score.score, "metadata": score.metadata}


def own_prompt(use_cot):
    return {
        "prompt": {"type": "chat", "messages": [{"role": "user", "content": OWN_TEMPLATE}]},
        "options": {"model": MODEL},
        "parser": {"type": "llm_classifier", "use_cot": use_cot, "choice_scores": OWN_SCORES},
    }


pairs = []
for use_cot in (True, False):
    for name, choices in CHOICES.items():
        for choice in choices:
            given = arguments(choice)
            scorer = getattr(autoevals, name)(model=MODEL, use_cot=use_cot, client=client, temperature=0)
            options = {"model": MODEL, "use_cot": use_cot, "temperature": 0}
            pairs.append([theirs(scorer, given), ours(global_function=name, input={**given, **options})])
    for choice in OWN_SCORES:
        given = arguments(choice)
        scorer = autoevals.LLMClassifier("animal", OWN_TEMPLATE, OWN_SCORES, model=MODEL, use_cot=use_cot, client=client)
        pairs.append([theirs(scorer, given), ours(inline_prompt=own_prompt(use_cot), name="animal", input=given)])
print(json.dumps(pairs))
