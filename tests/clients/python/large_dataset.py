"""A dataset of more records than one page and one request hold: its versions, updates, deletes and merges; experiments as datasets."""

import os
import sys

# as_dataset() knows the roots of traces by ids of the older form only.
os.environ["BRAINTRUST_LEGACY_IDS"] = "true"

import braintrust
from reading import URL, ask, fetch, same

RECORDS = 2_100
project = f"python-large-dataset-{sys.argv[1]}"


def opened(**more):
    return braintrust.init_dataset(project=project, name="large", **more)


def rows_of(dataset, **more):
    rows = list(dataset.fetch(**more))
    same("each once", len(rows), len({row["id"] for row in rows}))
    return {row["id"]: row for row in rows}


dataset = opened(metadata={"records": RECORDS})
for i in range(RECORDS):
    dataset.insert(id=f"r{i}", input={"i": i}, expected=i % 7, metadata={"kind": {"even": i % 2 == 0}, "text": "x" * (i % 50)}, tags=["made", f"mod-{i % 3}"])
summary = dataset.summarize()
same("records", (summary.dataset_name, summary.data_summary.total_records), ("large", RECORDS))
same("its address", summary.dataset_url, f"{URL}/app/default/p/{project}/datasets/large")


def as_made(rows):
    same("as made", set(rows), {f"r{i}" for i in range(RECORDS)})
    for i in range(RECORDS):
        row = rows[f"r{i}"]
        same(f"record {i}", (row["input"], row["expected"], row["tags"]), ({"i": i}, i % 7, ["made", f"mod-{i % 3}"]))
        same(f"its metadata {i}", row["metadata"], {"kind": {"even": i % 2 == 0}, "text": "x" * (i % 50)})


as_made(rows_of(dataset))
made = dataset.version
as_made(rows_of(opened(), batch_size=999))

# Updates of every fifth, by the SDK; every record that ends in 9 is deleted; some are inserted anew, in place of what was.
for i in range(0, RECORDS, 5):
    dataset.update(id=f"r{i}", expected={"was": i % 7}, metadata={"kind": {"updated": True}, "round": 1}, tags=["updated"])
dataset.flush()
updated = opened().version
for i in range(9, RECORDS, 10):
    dataset.delete(f"r{i}")
dataset.flush()
deleted = opened().version
for i in range(9, RECORDS, 100):
    dataset.insert(id=f"r{i}", input="anew", expected=None)
dataset.insert(id="r0", input="replaced")
dataset.flush()
replaced = opened().version
assert made < updated <= deleted < replaced, (made, updated, deleted, replaced)
same("their form", {len(version) for version in (made, updated, deleted, replaced)}, {19})


def after_updates(row, i):
    if i % 5:
        return as_made_one(row, i)
    same(f"updated {i}", (row["input"], row["expected"], row["tags"]), ({"i": i}, {"was": i % 7}, ["made", f"mod-{i % 3}", "updated"]))
    same(f"merged {i}", row["metadata"], {"kind": {"even": i % 2 == 0, "updated": True}, "text": "x" * (i % 50), "round": 1})


def as_made_one(row, i):
    same(f"untouched {i}", (row["expected"], row["tags"]), (i % 7, ["made", f"mod-{i % 3}"]))


# At each version, as it was: now, and when it is asked for again.
for _ in range(2):
    as_made(rows_of(opened(version=made)))
rows = rows_of(opened(version=updated))
same("then", set(rows), {f"r{i}" for i in range(RECORDS)})
for i in range(RECORDS):
    after_updates(rows[f"r{i}"], i)
now = rows_of(opened())
same("now", set(now), {f"r{i}" for i in range(RECORDS) if i % 10 != 9 or i % 100 == 9})
for i in range(1, RECORDS):
    if i % 100 == 9:
        row = now[f"r{i}"]
        same(f"anew {i}", (row["input"], row["expected"], row.get("metadata"), row.get("tags")), ("anew", None, None, None))
    elif i % 10 != 9:
        after_updates(now[f"r{i}"], i)
same("replaced", (now["r0"]["input"], now["r0"]["expected"], now["r0"].get("tags")), ("replaced", None, None))
same("its first time", now["r10"]["created"], rows["r10"]["created"])
same("records", dataset.summarize().data_summary.total_records, len(now))
same("over HTTP", set(fetch("dataset", dataset.id, limit=700)), set(now))
same("over HTTP, then", set(fetch("dataset", dataset.id, limit=1000, version=made)), {f"r{i}" for i in range(RECORDS)})

# Some of them, as the SDK asks for them in a query.
only = {"btql": "metadata.round = 1 and input.i < 100 and tags includes 'updated'"}
filtered = rows_of(opened(_internal_btql={"filter": only}))
same("filtered", set(filtered), {f"r{i}" for i in range(5, 100, 5)})
for i in range(5, 100, 5):
    after_updates(filtered[f"r{i}"], i)
for version, wanted in ((made, set()), (updated, {f"r{i}" for i in range(0, 100, 5)})):
    same("filtered, then", set(rows_of(opened(version=version, _internal_btql={"filter": only}))), wanted)

# The version that an environment names.
ask("POST", "/environment", name=project, slug=project)
for version, wanted in ((made, RECORDS), (replaced, len(now))):
    ask("PUT", f"/environment-object/dataset/{dataset.id}/{project}", object_version=version)
    same("in an environment", len(rows_of(opened(environment=project))), wanted)

# An experiment over all of it, opened to read, and as the data of the next one.
experiment = braintrust.init(project=project, experiment="over", dataset=opened(version=made))
same("the dataset's version", (experiment.data["dataset_id"], experiment.data["dataset_version"]), (dataset.id, made))
for i in range(1_050):
    with experiment.start_span(name="case", id=f"case-{i}", input={"i": i}, metadata={"i": i}, tags=["t"]) as span:
        span.log(output=i * 2, **({"expected": i} if i % 2 else {}))
        if i < 100:
            span.start_span(name="below", input="no case").end()
experiment.flush()
read = braintrust.init(project=project, experiment="over", open=True)
same("opened", read.id, experiment.id)
same("its rows", len(list(read)), 1_150)
cases = {case["id"]: case for case in read.as_dataset(batch_size=500)}
same("cases", set(cases), {f"case-{i}" for i in range(1_050)})
for i in range(1_050):
    case = cases[f"case-{i}"]
    wanted = ({"i": i}, i if i % 2 else i * 2, ["t"], {"i": i})
    same(f"case {i}", (case["input"], case["expected"], case["tags"], case["metadata"]), wanted)

again = braintrust.Eval(
    project,
    experiment_name="again",
    data=braintrust.BaseExperiment(name="over"),
    task=lambda input: input["i"] * 2,
    scores=[lambda input, output, expected: output == expected],
    max_concurrency=20,
    enable_cache=False,
)
same("compared with", again.summary.comparison_experiment_name, "over")
same("results", len(again.results), 1_050)
# The odd ones expect themselves, and none of them is twice itself; the even ones expect what came out.
[score] = again.summary.comparison.scores.values()
same("score", score.score, 0.5)
print("large dataset: ok")
