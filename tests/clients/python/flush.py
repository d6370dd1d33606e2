"""How long the SDK takes to hand over 10,000 spans, to a server and to one that answers at once and keeps nothing.

Not a test of CI: python flush.py, with BRAINTRUST_APP_URL and BRAINTRUST_API_KEY of a server. Each side in a process of its own, taking
turns at going first; the median of the pairs is printed.
"""

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time

SPANS = 10_000
PAIRS = 5
ID = "11111111-2222-4333-8444-555555555555"


class Nothing(asyncio.Protocol):
    """What the SDK asks for before it logs, and an empty answer to all that it logs; bodies are counted and not kept."""

    def connection_made(self, transport):
        self.transport, self.head, self.left = transport, b"", 0

    def data_received(self, data):
        while data:
            if self.left > 0:
                taken = min(self.left, len(data))
                self.left, data = self.left - taken, data[taken:]
            else:
                self.head += data
                head, end, data = self.head.partition(b"\r\n\r\n")
                if not end:
                    return
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                self.path, self.head, self.left = head.split(b" ", 2)[1].decode(), b"", int(length[1]) if length else 0
            if self.left == 0:
                self.answer()

    def answer(self):
        origin = f"http://127.0.0.1:{self.transport.get_extra_info('sockname')[1]}"
        answers = {
            "/api/apikey/login": {"org_info": [{"id": ID, "name": "o", "api_url": origin, "proxy_url": origin}]},
            "/v1/project": {"id": ID, "name": "p"},
            "/version": {"logs3_payload_max_bytes": 6 << 20},
        }
        said = json.dumps(answers.get(self.path, {})).encode()
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))


async def answer_at_once():
    server = await asyncio.get_running_loop().create_server(Nothing, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def handed_over():
    import braintrust

    logger = braintrust.init_logger(project="flush")
    logger.log(input="first")
    logger.flush()
    began = time.monotonic()
    for number in range(SPANS):
        with logger.start_span(name="call", type="llm", input=[{"role": "user", "content": f"why {number}"}]) as span:
            span.log(output="because", metrics={"tokens": number}, metadata={"model": "m", "n": number})
    logger.flush()
    print(time.monotonic() - began)


def seconds(url):
    environment = {**os.environ, "BRAINTRUST_APP_URL": url}
    environment.pop("BRAINTRUST_API_URL", None)
    done = subprocess.run([sys.executable, __file__, "hand-over"], env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


if sys.argv[1:] == ["hand-over"]:
    handed_over()
elif sys.argv[1:] == ["nothing"]:
    asyncio.run(answer_at_once())
else:
    bare = subprocess.Popen([sys.executable, __file__, "nothing"], stdout=subprocess.PIPE, text=True)
    try:
        sides = {"server": os.environ["BRAINTRUST_APP_URL"], "nothing": f"http://127.0.0.1:{bare.stdout.readline().strip()}"}
        taken = {name: [] for name in sides}
        for pair in range(PAIRS):
            for name in sorted(sides, reverse=pair % 2 == 1):
                taken[name].append(seconds(sides[name]))
        for name, times in taken.items():
            print(f"{name}: {statistics.median(times):.2f} s, {SPANS / statistics.median(times):.0f} spans/s")
        print(f"ratio: {statistics.median(a / b for a, b in zip(taken['server'], taken['nothing'])):.2f} (at most 1.3)")
    finally:
        bare.kill()
