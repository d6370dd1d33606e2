"""Scores random cases with autoevals, and writes them with their scores.

Usage: native_scorers.py FILE COUNT SEED, where COUNT is the number of cases of each scorer.
"""

import json
import random
import sys

import autoevals

WORDS = ["", "a", "ab", "kitten", "sitting", "true", "null", "1", "1.0", "[]", "{}", "caf\u00e9", "\U0001f600 ok"]
WORDS += ["e\u0301", "it's", 'say "x"', "tab\t", "\u200b"]
NUMBERS = [0, 1, -1, 2, 10, 100, 105, 0.0, -0.0, 0.5, 1.0, -2.5, 1e-5, 1e16, 1.5e300]
NUMBERS += [2**53 + 1, 2**63 - 1, -(2**63)]
SCHEMAS = [
    {},
    {"type": "object"},
    {"type": "array", "items": {"type": "string"}},
    {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "additionalProperties": False},
    {"anyOf": [{"type": "null"}, {"type": "array", "maxItems": 2, "uniqueItems": True}]},
    {"$ref": "#/definitions/t", "definitions": {"t": {"type": ["string", "object"], "minProperties": 1}}},
    {"type": "object", "patternProperties": {"^[ab]$": {"enum": [1, "a", None, True]}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}], "additionalItems": False},
    {"not": {"type": "object"}, "if": {"type": "array"}, "then": {"minItems": 1}},
    {"type": "nothing"},
]


class Cases:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self):
        pick = self.random.random()
        if pick < 0.4:
            return self.random.choice(WORDS)
        alphabet = self.random.choice(["ab", "abcdefgh ", "a\u00e9\u4e2d\U0001f600", "0123456789"])
        return "".join(self.random.choice(alphabet) for _ in range(self.random.choice([1, 3, 8, 70, 150])))

    def number(self):
        pick = self.random.random()
        if pick < 0.4:
            return self.random.choice(NUMBERS)
        if pick < 0.7:
            return self.random.randint(-1000, 1000)
        return self.random.uniform(-1, 1) * 10 ** self.random.randint(-8, 25)

    def scalar(self):
        pick = self.random.random()
        if pick < 0.4:
            return self.text()
        if pick < 0.75:
            return self.number()
        return self.random.choice([True, False, None])

    def value(self, depth=3):
        pick = self.random.random()
        if depth == 0 or pick < 0.4:
            return self.scalar()
        if pick < 0.5:
            return json.dumps(self.value(depth - 1), ensure_ascii=self.random.random() < 0.5)
        size = self.random.randint(0, 4)
        if pick < 0.75:
            return [self.value(depth - 1) for _ in range(size)]
        return {self.random.choice("abcd\u00e9"): self.value(depth - 1) for _ in range(size)}

    def changed(self, value):
        """A value that differs in some parts."""
        pick = self.random.random()
        if pick < 0.15:
            return self.value(1)
        if isinstance(value, dict):
            members = [(name, self.changed(member)) for name, member in value.items() if self.random.random() < 0.9]
            if self.random.random() < 0.3:
                self.random.shuffle(members)
            return dict(members)
        if isinstance(value, list):
            return [self.changed(item) for item in value if self.random.random() < 0.9]
        if isinstance(value, str):
            characters = [c for c in value if self.random.random() < 0.9]
            characters.insert(self.random.randint(0, len(characters)), self.random.choice(["", "x", "\u00e9"]))
            return "".join(characters)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15:
            return value + self.random.choice([0, 1, -2, 0.5])
        return value

    def written(self, value):
        """A value, or a JSON text of it."""
        pick = self.random.random()
        if pick < 0.3:
            return json.dumps(value, indent=self.random.choice([None, 1]))
        return value

    def pair(self, value):
        other = value if self.random.random() < 0.3 else self.changed(value)
        return {"output": value, "expected": other}

    def levenshtein(self):
        return self.pair(self.text() if self.random.random() < 0.8 else self.value()), {}

    def exact_match(self):
        pair = self.pair(self.value(2))
        return {name: self.written(value) for name, value in pair.items()}, {}

    def numeric_diff(self):
        pair = self.pair(self.number() if self.random.random() < 0.95 else self.scalar())
        return pair, {}

    def json_diff(self):
        pair = self.pair(self.value(4))
        options = {}
        if self.random.random() < 0.3:
            options["preserve_strings"] = self.random.random() < 0.5
        if self.random.random() < 0.2:
            options["string_scorer"] = "ExactMatch"
        return {name: self.written(value) for name, value in pair.items()}, options

    def valid_json(self):
        output = self.written(self.value(2))
        if isinstance(output, str) and self.random.random() < 0.2:
            output = output[:-1]
        if self.random.random() < 0.7:
            return {"output": output, "schema": self.random.choice(SCHEMAS)}, {}
        return {"output": output}, {}

    def list_contains(self):
        scorer = self.random.choice(["Levenshtein", "Levenshtein", "ExactMatch", "NumericDiff"])
        item = self.number if scorer == "NumericDiff" else self.text
        output = [item() if self.random.random() < 0.9 else self.value(1) for _ in range(self.random.randint(0, 6))]
        expected = self.changed(output) if self.random.random() < 0.7 else [item() for _ in range(3)]
        expected = expected if isinstance(expected, list) else [expected]
        options = {"pairwise_scorer": scorer}
        if self.random.random() < 0.5:
            options["allow_extra_entities"] = self.random.random() < 0.7
        return {"output": output, "expected": expected}, options


def scored(name, arguments, options):
    """The score, or the name of the exception."""
    built = {key: getattr(autoevals, value)() if key.endswith("_scorer") else value for key, value in options.items()}
    if "schema" in arguments:
        # autoevals 0.4.1 takes the schema in the place of what is expected, and fails where it is named
        arguments = {"output": arguments["output"], "expected": arguments["schema"]}
    try:
        return {"score": float(getattr(autoevals, name)(**built).eval(**arguments).score)}
    except Exception as error:
        return {"error": type(error).__name__}


def main():
    file, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    cases = Cases(seed)
    makers = {
        "Levenshtein": cases.levenshtein,
        "ExactMatch": cases.exact_match,
        "NumericDiff": cases.numeric_diff,
        "JSONDiff": cases.json_diff,
        "ValidJSON": cases.valid_json,
        "ListContains": cases.list_contains,
    }
    written = []
    for name, make in makers.items():
        for _ in range(count):
            arguments, options = make()
            written.append({"scorer": name, "input": {**arguments, **options}, **scored(name, arguments, options)})
    with open(file, "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in written) + "\n]\n")


main()
