#!/usr/bin/env python3
"""Refreshes the price table of models from LiteLLM's public table, and dates it.

    refresh.py SOURCE [--date YYYY-MM-DD] [--table FILE]

SOURCE is a path or an https address of LiteLLM's `model_prices_and_context_window.json`, such as
https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json

The table takes the models that vendors sell themselves, priced by tokens. A model that the source no longer has keeps
its price, since rows of the past name it. Equal input and date make equal output.
"""

import argparse
import datetime
import decimal
import json
import pathlib
import sys
import urllib.request

# Vendors whose own prices are taken. Where two sell a model of one name, the earlier one counts.
VENDORS = [
    "openai",
    "text-completion-openai",
    "anthropic",
    "gemini",
    "deepseek",
    "mistral",
    "xai",
    "cohere_chat",
    "cohere",
]
MODES = {"chat", "responses", "completion", "embedding"}
# Prices in the source, by their names in the table.
FIELDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}
ABOUT = (
    "USD per million tokens: list prices of the standard tier of each vendor. Long contexts, batches, regions, images and "
    "sound may cost something else; cache_write is the cheapest that is offered. Written by refresh.py from LiteLLM's "
    "model_prices_and_context_window.json (MIT license)."
)
SOURCE_BYTES_MAX = 64 << 20
SOURCE_SECONDS_MAX = 60
MILLION = decimal.Decimal(1_000_000)


def read(source):
    """Returns the source's entries, with exact numbers."""
    if source.startswith("https://"):
        with urllib.request.urlopen(source, timeout=SOURCE_SECONDS_MAX) as answer:
            text = answer.read(SOURCE_BYTES_MAX + 1)
    else:
        text = pathlib.Path(source).read_bytes()
    if len(text) > SOURCE_BYTES_MAX:
        sys.exit(f"{source}: it has more than {SOURCE_BYTES_MAX} bytes")
    return json.loads(text, parse_float=decimal.Decimal)


def price(entry):
    """Returns USD per million tokens, or None if the entry is not priced by tokens."""
    found = {}
    for name, field in FIELDS.items():
        cost = entry.get(field)
        if cost is None:
            continue
        if not isinstance(cost, (int, decimal.Decimal)) or cost < 0:
            return None
        found[name] = decimal.Decimal(cost) * MILLION
    # A price of zero is a preview, not a price.
    if not {"input", "output"} <= found.keys() or not any(found.values()):
        return None
    return found


def taken(entries):
    """Returns the prices of models by the names that clients log, without the prefix of a vendor."""
    ranked = []
    for key, entry in entries.items():
        vendor = entry.get("litellm_provider")
        if vendor not in VENDORS or entry.get("mode") not in MODES or key.startswith("ft:"):
            continue
        name = key.removeprefix(f"{vendor}/")
        if "/" not in name and (found := price(entry)):
            ranked.append((VENDORS.index(vendor), key != name, name, found))
    models = {}
    for _, _, name, found in sorted(ranked, key=lambda one: one[:3]):
        models.setdefault(name, found)
    return models


def plain(number):
    """Writes a number without an exponent and without needless zeros."""
    text = f"{decimal.Decimal(number):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def written(date, models):
    """Returns the table: a line for each model, by name."""
    lines = []
    for name, found in sorted(models.items()):
        prices = ", ".join(f'"{field}": {plain(found[field])}' for field in FIELDS if field in found)
        lines.append(f"    {json.dumps(name)}: {{{prices}}}")
    head = f'{{\n  "about": {json.dumps(ABOUT)},\n  "date": {json.dumps(date)},\n  "models": {{\n'
    return head + ",\n".join(lines) + "\n  }\n}\n"


def kept(table):
    """Returns the models of the present table, each name by itself."""
    models = {}
    for name, found in json.loads(table.read_bytes(), parse_float=decimal.Decimal)["models"].items():
        for one in [name, *found.pop("also", [])]:
            models[one] = found
    return models


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--date", default=datetime.date.today(), type=datetime.date.fromisoformat)
    parser.add_argument("--table", default=pathlib.Path(__file__).with_name("prices.json"), type=pathlib.Path)
    asked = parser.parse_args()
    before, found = kept(asked.table), taken(read(asked.source))
    if not found:
        sys.exit(f"{asked.source}: it has no model of {', '.join(VENDORS)}")
    asked.table.write_text(written(asked.date.isoformat(), before | found))
    changed = sum(1 for name, one in found.items() if name in before and before[name] != one)
    gone = len(before.keys() - found.keys())
    print(f"{len(before | found)} models: {len(found.keys() - before.keys())} new, {changed} changed, {gone} kept from before")


if __name__ == "__main__":
    main()
