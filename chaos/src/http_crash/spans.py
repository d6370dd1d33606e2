"""Logs spans through the SDK until it is told to end, and says what each of its requests came to: one JSON text a line.

    {"project": id}                  it has logged in; before that it must not be killed
    {"sends": [row, ..]}             a request with rows goes out; the SDK may send the same again
    {"answer": status}               it was answered, whole
    {"no_answer": why}               it was not; the SDK hears of it when a line comes in, "go on" or "end"
    {"flushed": true, "ids": [..]}   whether the SDK takes the rows logged since the last such line for kept

The SDK is as it was installed: what is overheard goes through the HTTP library below it.
"""

import itertools
import json
import os
import random
import sys
import time
import traceback
from urllib.parse import urlsplit

import braintrust
from requests.adapters import HTTPAdapter

# "patient": the SDK as it comes, which sends a request again and again. "hasty": it tries once and gives the rows up.
seed, manner = int(sys.argv[1]), sys.argv[2]

ROWS_PER_FLUSH_MAX = 12
OPEN_SPANS_MAX = 20
# So that its rows do not become so many that reading them back takes longer than writing.
REST_SECONDS = 0.01

over = False
to_the_network = HTTPAdapter.send


def say(**said):
    print(json.dumps(said), flush=True)


def wait_for_orders():
    global over
    order = sys.stdin.readline().strip()
    if not order:
        # Whoever started this is gone.
        os._exit(1)
    over = order == "end"


def overheard(adapter, request, *args, **kwargs):
    if request.method != "POST" or urlsplit(request.url).path != "/logs3":
        return to_the_network(adapter, request, *args, **kwargs)
    say(sends=json.loads(request.body)["rows"])
    try:
        response = to_the_network(adapter, request, *args, **kwargs)
        # Reads it to its end: half an answer is none.
        _ = response.content
    except Exception as error:
        say(no_answer=repr(error))
        wait_for_orders()
        raise
    if response.status_code == 503:
        say(no_answer="503: nobody knows")
        wait_for_orders()
    else:
        say(answer=response.status_code)
    return response


HTTPAdapter.send = overheard
if manner == "hasty":
    braintrust.logger.set_http_adapter(HTTPAdapter())
logger = braintrust.init_logger(project=f"SDK {seed}")
say(project=logger.project.id)

rng = random.Random(seed)
numbers = itertools.count(1)
spans = []
while not over:
    touched = set()
    for _ in range(rng.randint(1, ROWS_PER_FLUSH_MAX)):
        number = next(numbers)
        text = "x" * rng.randrange(2000)
        if spans and rng.random() < 0.5:
            span = rng.choice(spans)
            span.log(output={"n": number, "text": text}, metadata={f"m{number % 3}": number}, scores={"s": rng.random()})
        else:
            parent = rng.choice(spans) if spans and rng.random() < 0.5 else logger
            span = parent.start_span(name=f"span {number}", input={"n": number, "text": text}, metadata={"by": number})
            spans.append(span)
        touched.add(span.id)
        if rng.random() < 0.3 or len(spans) > OPEN_SPANS_MAX:
            span.end()
            spans.remove(span)
    try:
        logger.flush()
        flushed = True
    except Exception:
        traceback.print_exc()
        flushed = False
    say(flushed=flushed, ids=sorted(touched))
    time.sleep(REST_SECONDS)
