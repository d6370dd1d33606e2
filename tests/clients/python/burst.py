"""A burst of large spans, as a program logs that has collected them: every row arrives, though more comes at once than is written at once.

ASSAY_BURSTS names them as `count x bytes`, and ASSAY_SENDERS the sender threads, of which the SDK has one a processor.
"""

import base64
import os
import sys
import time

# The SDK sends with one thread a processor, whatever the machine is that this runs on.
os.cpu_count = lambda: int(os.environ.get("ASSAY_SENDERS", "8"))

import braintrust
from reading import ask, same

BURSTS = os.environ.get("ASSAY_BURSTS", "16x1048576,200x102400")


def text_of(size):
    """No text compresses, and no two are alike."""
    return base64.b64encode(os.urandom(size * 3 // 4)).decode()


def burst(run, count, size):
    project = f"python-burst-{run}-{count}x{size}"
    logger = braintrust.init_logger(project=project)
    texts = [text_of(size) for _ in range(count)]
    began = time.time()
    for n, text in enumerate(texts):
        logger.log(input=text, metadata={"n": n, "end": text[-16:]})
    logger.flush()
    took = time.time() - began
    found = ask("POST", "/btql", query=f"SELECT metadata, length(input) AS size FROM project_logs('{logger.project.id}') LIMIT {count + 10}")["data"]
    wanted = [(n, text[-16:], len(text)) for n, text in enumerate(texts)]
    arrived = sorted((row["metadata"]["n"], row["metadata"]["end"], row["size"]) for row in found)
    lost = [n for n, _, _ in wanted if n not in {n for n, _, _ in arrived}]
    same(f"{count} of {size} bytes: lost after {took:.1f} s", lost, [])
    same(f"{count} of {size} bytes", arrived, wanted)
    print(f"burst: {count} of {size} bytes in {took:.2f} s")


for each in BURSTS.split(","):
    count, size = (int(part) for part in each.split("x"))
    burst(sys.argv[1], count, size)
print("burst: ok")
