"""Tools and scorers: with pydantic, asynchronous, of autoevals, with native packages, that print, fail and nest."""

import asyncio
import sys

import braintrust
import numpy
import orjson
from autoevals import Levenshtein
from helpers import doubled, project
from openai import OpenAI
from pydantic import BaseModel

# Made when the bundle is loaded.
client = OpenAI()


class Pair(BaseModel):
    a: float
    b: float = 10


def add(a, b=10):
    return a + b


project.tools.create(handler=add, name="Add", slug="add", description="Adds two numbers", parameters=Pair)


class Item(BaseModel):
    name: str
    price: float


class Order(BaseModel):
    items: list[Item]


class Receipt(BaseModel):
    total: float
    names: list[str]


def total(items):
    items = [Item.model_validate(item) for item in items]
    return Receipt(total=sum(item.price for item in items), names=[item.name for item in items])


project.tools.create(handler=total, name="Total", slug="total", parameters=Order, returns=Receipt)


class Vector(BaseModel):
    values: list[float]


def norm(values):
    array = numpy.array(values)
    return {"norm": numpy.linalg.norm(array), "sorted": numpy.sort(array), "count": array.size}


project.tools.create(handler=norm, name="Norm", slug="norm", parameters=Vector)


class Text(BaseModel):
    text: str


def parse(text):
    return orjson.loads(text)


project.tools.create(handler=parse, name="Parse", slug="parse", parameters=Text)


def twice(text):
    return doubled(text)


project.tools.create(handler=twice, name="Twice", slug="twice", parameters=Text)


class Lines(BaseModel):
    lines: int


def numbered(lines):
    for line in range(1, lines + 1):
        yield f"line {line}"


def talk(lines):
    for line in numbered(lines):
        print(line)
    print("the end", file=sys.stderr)
    return lines


project.tools.create(handler=talk, name="Talk", slug="talk", parameters=Lines)


class City(BaseModel):
    city: str


class NoSuchCity(Exception):
    pass


def find(city):
    raise NoSuchCity(f"there is no city named {city}")


def fail(city):
    return find(city)


project.tools.create(handler=fail, name="Fail", slug="fail", parameters=City)


class Project(BaseModel):
    project: str


def nested(project):
    """Its call of another function is below its own span."""
    return 2 * braintrust.invoke(project_name=project, slug="add", input={"a": 1, "b": 2})


project.tools.create(handler=nested, name="Nested", slug="nested", parameters=Project)


@braintrust.traced
def step(text):
    return len(text)


def steps(text):
    with braintrust.start_span(name="steps") as span:
        span.log(metadata={"seen": True})
        return step(text) + step("ab")


project.tools.create(handler=steps, name="Steps", slug="steps", parameters=Text)


class Question(BaseModel):
    question: str


def ask_a_model(question):
    messages = [{"role": "user", "content": question}]
    return client.chat.completions.create(model="scripted", messages=messages).choices[0].message.content


project.tools.create(handler=ask_a_model, name="Ask a model", slug="ask-a-model", parameters=Question)


class Scored(BaseModel):
    output: str
    expected: str | None = None


def same_length(output, expected):
    return 1 if len(output) == len(expected) else 0


project.scorers.create(handler=same_length, name="Same length", slug="same-length", parameters=Scored)


async def words(output, expected, metadata):
    await asyncio.sleep(0)
    count = len(output.split(" "))
    return {"name": "Words", "score": 1 / count, "metadata": {"words": count, "known": expected is None, "metadata": metadata}}


project.scorers.create(handler=words, name="Words", slug="words", parameters=Scored)

project.scorers.create(handler=Levenshtein, name="Levenshtein", slug="levenshtein", parameters=Scored)


async def spans(output, trace):
    found = await trace.get_spans(span_type=["llm"])
    return braintrust.Score(name="Spans", score=1 if found else 0, metadata={"outputs": [span.output for span in found]})


project.scorers.create(handler=spans, name="Spans", slug="spans", parameters=Scored)


def tone(output):
    is_loud = output.endswith("!")
    return {"name": "Tone", "id": "loud" if is_loud else "calm", "label": "Loud" if is_loud else "Calm"}


project.classifiers.create(handler=tone, name="Tone", slug="tone", parameters=Scored)
