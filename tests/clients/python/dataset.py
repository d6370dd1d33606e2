"""A dataset: records inserted, updated and deleted, read back by iteration, at a version, and under an experiment."""

import sys

import braintrust
from reading import fetch, same

project = f"python-dataset-{sys.argv[1]}"
dataset = braintrust.init_dataset(project=project, name="questions", description="d", metadata={"m": 1})
same("an empty one", list(dataset), [])
for i in range(5):
    dataset.insert(id=f"q{i}", input={"q": i}, expected={"a": i} if i else None, tags=[f"t{i}"], metadata={"n": {"i": i}})
made = dataset.insert(input="no id")
dataset.flush()

rows = {row["id"]: row for row in dataset}
same("records", set(rows), {"q0", "q1", "q2", "q3", "q4", made})
same("expected", rows["q3"]["expected"], {"a": 3})
same("no expected", (rows["q0"]["expected"], rows[made]["expected"]), (None, None))
same("tags", rows["q2"]["tags"], ["t2"])
same("its dataset", rows["q2"]["dataset_id"], dataset.id)
version = dataset.version
assert len(version) == 19 and version == max(row["_xact_id"] for row in rows.values()), version

dataset.update(id="q1", expected={"b": 2}, metadata={"n": {"j": 1}})
dataset.delete("q2")
dataset.flush()
rows = {row["id"]: row for row in dataset.fetch(batch_size=2)}
same("after a delete", set(rows), {"q0", "q1", "q3", "q4", made})
same("merged", (rows["q1"]["expected"], rows["q1"]["metadata"], rows["q1"]["input"]), ({"a": 1, "b": 2}, {"n": {"i": 1, "j": 1}}, {"q": 1}))
assert dataset.version > version, (dataset.version, version)
same("over HTTP", set(fetch("dataset", dataset.id, limit=2)), set(rows))

# The same dataset by name and by id, and as it was.
again = braintrust.init_dataset(project=project, name="questions", description="other")
same("by name", (again.id, again.data["description"]), (dataset.id, "d"))
same("by id", braintrust.init_dataset(dataset_id=dataset.id).name, "questions")
pinned = braintrust.init_dataset(project=project, name="questions", version=version)
rows = {row["id"]: row for row in pinned}
same("as it was", set(rows), {"q0", "q1", "q2", "q3", "q4", made})
same("unmerged", rows["q1"]["expected"], {"a": 1})

# An experiment over it.
experiment = braintrust.init(project=project, experiment="over", dataset=again)
same("dataset", experiment.data["dataset_id"], dataset.id)
same("dataset's version", experiment.data["dataset_version"], again.version)
for record in again:
    experiment.log(
        input=record["input"], output=1, scores={"s": 1}, metadata={"record": record["id"]}
    )
experiment.flush()
same("a row a record", len(list(experiment)), 5)

unnamed = braintrust.init_dataset(project=project)
same("the default name", unnamed.name, "logs")
print("dataset: ok")
