"""A dataset of more than a page: read whole, updated, merged, deleted, as it was at each version, and through a snapshot."""

import sys

import braintrust
import requests
from reading import HEADERS, URL, same

project = f"python-large-dataset-{sys.argv[1]}"
ROWS = 1200
dataset = braintrust.init_dataset(project=project, name="large")
for number in range(ROWS):
    dataset.insert(id=f"r{number:05}", input={"number": number}, expected=number * 2, metadata={"even": number % 2 == 0})
dataset.flush()


def rows(version=None):
    read = braintrust.init_dataset(project=project, name="large", **({"version": version} if version else {}))
    found = [row["id"] for row in read]
    same("each once", len(found), len(set(found)))
    return {row["id"]: row for row in read}


whole = rows()
same("all", sorted(whole), [f"r{number:05}" for number in range(ROWS)])
same("one", (whole["r00007"]["input"], whole["r00007"]["expected"]), ({"number": 7}, 14))
before = dataset.version
for number in range(0, ROWS, 3):
    dataset.update(id=f"r{number:05}", metadata={"third": True})
for number in range(0, ROWS, 100):
    dataset.delete(f"r{number:05}")
dataset.flush()
after = rows()
same("deleted", len(after), ROWS - ROWS // 100)
same("merged", after["r00003"]["metadata"], {"even": False, "third": True})
same("untouched", after["r00001"]["metadata"], {"even": False})
then = rows(before)
same("as it was", (sorted(then), then["r00003"]["metadata"]), (sorted(whole), {"even": False}))

made = requests.post(f"{URL}/v1/dataset_snapshot", headers=HEADERS, json={"dataset_id": dataset.id, "name": "before", "xact_id": before}, timeout=60)
same("snapshot", made.status_code, 200)
same("its version", made.json()["xact_id"], before)
preview = requests.post(f"{URL}/v1/dataset/{dataset.id}/restore/preview", headers=HEADERS, json={"version": before}, timeout=60).json()
same("preview", preview, {"rows_to_restore": ROWS // 100 + (ROWS // 3 - len(range(0, ROWS, 300))), "rows_to_delete": 0})
same("restored", requests.post(f"{URL}/v1/dataset/{dataset.id}/restore", headers=HEADERS, json={"version": before}, timeout=60).status_code, 200)
back = rows()
same("back", (sorted(back), back["r00003"]["metadata"]), (sorted(whole), {"even": False}))
same("summary", dataset.summarize().data_summary.total_records, ROWS)
print("large dataset: ok")
