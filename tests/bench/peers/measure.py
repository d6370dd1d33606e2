"""What is done to a server, and what came of it: a load, the wait until all of it can be read, a kill under load."""

import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from load import SPANS_PER_REQUEST, Load
from servers import TICKS_PER_SECOND, Server

# A look costs the kernel a walk over all pages of all processes.
MEMORY_EVERY_SECONDS = 2
# Between two looks whether spans can be read yet.
LOOK_EVERY_SECONDS = 0.2
# Of as many of the newest requests the last trace is looked for; only then all is counted.
NEWEST_REQUESTS = 64
# A server that shows no further span for this long has lost the others; one with a full queue may need most of it.
STILL_SECONDS = 300
# After a restart nothing is queued any more.
STILL_SECONDS_AFTER_KILL = 10
RETRY_SECONDS = 0.1
# Requests before anything is measured, each on its own connection: what a server puts off until its first request, and
# each of its workers, is not what is asked about. Their numbers are none of those that follow.
WARM_REQUESTS = range(2**31, 2**31 + 16)
WARM_SPANS = len(WARM_REQUESTS) * SPANS_PER_REQUEST


@dataclass
class Driven:
    """What was sent, by all connections. Times are those of `time.perf_counter`."""

    began: float
    # Numbers of acknowledged requests, in the order in which the answers came.
    acknowledged: list[int] = field(default_factory=list)
    answer_ms: list[float] = field(default_factory=list)
    last_answer: float = 0.0
    # 429 and 503; sent again.
    refused: list[int] = field(default_factory=list)
    # Other statuses and broken connections; not sent again.
    failed: list[str] = field(default_factory=list)
    # How many processors each used in the mean; the last are those that a quiet machine does not have.
    client: float = 0.0
    server: float = 0.0
    others: float = 0.0

    def spans(self) -> int:
        return len(self.acknowledged) * SPANS_PER_REQUEST

    def milliseconds(self, share: float) -> float:
        ordered = sorted(self.answer_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


@dataclass
class Counted:
    """What of it could be read."""

    missing: int
    # When the last one that ever came was there.
    at: float


class Watch:
    """Looks at a server's memory while something is done to it."""

    def __init__(self, server: Server) -> None:
        self.server, self.rss, self.pss = server, 0, 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self) -> None:
        while not self.ended.wait(MEMORY_EVERY_SECONDS):
            rss, pss = self.server.resident()
            self.rss, self.pss = max(self.rss, rss), max(self.pss, pss)

    def __enter__(self) -> "Watch":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()


def warm(server: Server, load: Load) -> None:
    driven = Driven(time.perf_counter())
    for number in WARM_REQUESTS:
        lane(server, load, iter([number]), driven, threading.Event())
    count(server, load, driven)


def drive(server: Server, load: Load, connections: int, seconds: float, kill: bool = False) -> Driven:
    """Every connection sends its next request when the one before is answered; with `kill` the server dies then."""
    before = used(server)
    driven, ended, numbers = Driven(time.perf_counter()), threading.Event(), itertools.count()
    lanes = [threading.Thread(target=lane, args=(server, load, numbers, driven, ended)) for _ in range(connections)]
    for thread in lanes:
        thread.start()
    try:
        time.sleep(seconds)
        if kill:
            server.kill()
    finally:
        ended.set()
        for thread in lanes:
            thread.join()
    lasted = time.perf_counter() - driven.began
    every, driven.client, driven.server = (
        (now - then) / lasted for now, then in zip(used(server), before, strict=True)
    )
    driven.others = every - driven.client - driven.server
    return driven


def used(server: Server) -> tuple[float, float, float]:
    """Seconds of the processors that were used so far: by everybody on the machine, by this process, by the server."""
    user, nice, system, _, _, *interrupts_and_stolen = map(int, Path("/proc/stat").read_text().split()[1:9])
    every = (user + nice + system + sum(interrupts_and_stolen)) / TICKS_PER_SECOND
    return every, time.process_time(), server.cpu_seconds()


def lane(server: Server, load: Load, numbers: Iterator[int], driven: Driven, ended: threading.Event) -> None:
    """One connection. Whatever it changes of what came of it is one step, so the others need not wait."""
    client, number = server.client(), next(numbers, None)
    while number is not None and not ended.is_set():
        path, headers, body = server.sending(load, number)
        began = time.perf_counter()
        try:
            status, _, retry_after = client.send("POST", path, headers, body)
        except (OSError, HTTPException) as error:
            driven.failed.append(type(error).__name__)
            client, number = server.client(), next(numbers, None)
            continue
        now = time.perf_counter()
        if status in (429, 503):
            driven.refused.append(number)
            time.sleep(float(retry_after or RETRY_SECONDS))
            continue
        if status == 200:
            driven.acknowledged.append(number)
            driven.answer_ms.append((now - began) * 1e3)
            driven.last_answer = now
        else:
            driven.failed.append(str(status))
        number = next(numbers, None)


def count(server: Server, load: Load, driven: Driven, still_seconds: float = STILL_SECONDS) -> Counted:
    """Waits until every acknowledged span can be read, or until no more come, and counts those that cannot."""
    newest = dict(list(load.spans(number).items())[-1] for number in driven.acknowledged[-NEWEST_REQUESTS:])
    _, at = wait(server, newest, max(driven.began, driven.last_answer), still_seconds)
    # All are asked for once: how long that takes is not the server's to answer for, unless one was not there yet.
    left: dict[str, str] = {}
    for number in driven.acknowledged:
        left.update(load.spans(number))
    found = server.readable(list(dict.fromkeys(left.values())))
    left = {span: trace for span, trace in left.items() if span not in found}
    if left:
        left, at = wait(server, left, at, still_seconds)
    return Counted(len(left), at)


def wait(server: Server, left: dict[str, str], at: float, still_seconds: float) -> tuple[dict[str, str], float]:
    """Spans, each with its trace, that never came; and when the last one that did was there."""
    looked = time.perf_counter()
    while left:
        found = server.readable(list(dict.fromkeys(left.values())))
        now = time.perf_counter()
        if not found.isdisjoint(left):
            left = {span: trace for span, trace in left.items() if span not in found}
            at = looked = now
        elif now - looked > still_seconds:
            break
        else:
            time.sleep(LOOK_EVERY_SECONDS)
    return left, at
