"""A way to a server that can be cut: connections are carried as they are, and end where the test says."""

import socket
import threading
from urllib.parse import urlsplit

BEFORE = "before a byte of the request"
WITHIN = "within the request"
UNANSWERED = "behind the request: it was done, and the answer does not come"
ANSWER = "within the answer"
PART = 1 << 16


class Cutting:
    """`decide(line, body)` says of each request where its connection ends, or None."""

    def __init__(self, url, decide):
        there = urlsplit(url)
        self.there, self.decide, self.cuts = (there.hostname, there.port), decide, []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        with client:
            try:
                with socket.create_connection(self.there) as server:
                    while self.one(client, server):
                        pass
            except OSError:
                return

    def one(self, client, server):
        """One request and its answer; False at the end."""
        request = Message(client)
        if not request.head():
            return False
        request.rest()
        line = request.line()
        cut = self.decide(line, request.body)
        if cut:
            with self.lock:
                self.cuts.append((cut, line))
        if cut == BEFORE:
            return False
        whole = request.start + request.body
        server.sendall(whole[: len(whole) // 2] if cut == WITHIN else whole)
        if cut == WITHIN:
            return False
        answer = Message(server)
        if not answer.head():
            return False
        answer.rest()
        if cut == UNANSWERED:
            return False
        whole = answer.start + answer.body
        client.sendall(whole[: len(whole) // 2] if cut == ANSWER else whole)
        return cut is None and b"connection: close" not in answer.start.lower()


class Message:
    """Of HTTP, with its length or in chunks."""

    def __init__(self, stream):
        self.stream, self.start, self.body = stream, b"", b""

    def more(self):
        part = self.stream.recv(PART)
        if not part:
            raise ConnectionError("it ended early")
        return part

    def head(self):
        read = b""
        while b"\r\n\r\n" not in read:
            part = self.stream.recv(PART)
            if not part:
                return False
            read += part
        start, _, self.body = read.partition(b"\r\n\r\n")
        self.start = start + b"\r\n\r\n"
        return True

    def line(self):
        return self.start.split(b"\r\n")[0].decode("latin-1")

    def rest(self):
        fields = dict(line.lower().split(b": ", 1) for line in self.start.split(b"\r\n")[1:] if b": " in line)
        if b"chunked" in fields.get(b"transfer-encoding", b""):
            while not self.body.endswith(b"0\r\n\r\n"):
                self.body += self.more()
            return
        parts, missing = [self.body], int(fields.get(b"content-length", b"0")) - len(self.body)
        while missing > 0:
            parts.append(self.more())
            missing -= len(parts[-1])
        self.body = b"".join(parts)
