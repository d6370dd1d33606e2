"""A prompt, a judge and parameters: nothing of this is code, so that no bundle is uploaded."""

from helpers import project
from pydantic import BaseModel

project.prompts.create(
    name="Ask",
    slug="ask",
    messages=[{"role": "system", "content": "be brief"}, {"role": "user", "content": "{{question}}"}],
    model="scripted",
)

project.scorers.create(
    name="Judge",
    slug="judge",
    messages=[{"role": "user", "content": "Is {{output}} right, where {{expected}} is expected?"}],
    model="scripted",
    use_cot=True,
    choice_scores={"right": 1, "wrong": 0.25},
)


class Prefix(BaseModel):
    value: str = "so"


project.parameters.create(
    name="Knobs",
    slug="knobs",
    schema={"model": {"type": "model", "default": "scripted"}, "prefix": Prefix},
)
