"""Worker for Python: loads one function, and serves its calls one after the other."""

import json
import os
import sys
import threading

import assay_functions
import assay_network
import assay_values

# Upper bound of a frame from the server.
TO_WORKER_BYTES_MAX = 64 * 1024 * 1024
HEADER_BYTES = 4
READ_BYTES_MAX = 1024 * 1024


class Channel:
    """Frames of a length and JSON, over a socket in blocking mode."""

    def __init__(self, fd):
        self.fd = fd
        self.received = b""
        self.process = os.getpid()
        os.set_blocking(fd, True)
        # Child processes of user code have no business here.
        os.set_inheritable(fd, False)

    def receive(self):
        """Returns the next frame, or None after the server has closed the channel."""
        if not self._fill(HEADER_BYTES):
            return None
        length = int.from_bytes(self.received[:HEADER_BYTES], "big")
        if length > TO_WORKER_BYTES_MAX:
            raise ValueError(f"a frame of the server has {length} bytes: at most {TO_WORKER_BYTES_MAX} are valid")
        if not self._fill(HEADER_BYTES + length):
            return None
        body = self.received[HEADER_BYTES : HEADER_BYTES + length]
        self.received = self.received[HEADER_BYTES + length :]
        return json.loads(body)

    def _fill(self, wanted):
        if len(self.received) >= wanted:
            return True
        parts, count = [self.received], len(self.received)
        while count < wanted:
            part = os.read(self.fd, READ_BYTES_MAX)
            if not part:
                return False
            parts.append(part)
            count += len(part)
        self.received = b"".join(parts)
        return True

    def send(self, text):
        """Sends the JSON text of a frame."""
        if os.getpid() != self.process:
            # User code forked, and its child came back to the worker.
            os._exit(1)
        body = assay_values.utf8(text)
        rest = memoryview(len(body).to_bytes(HEADER_BYTES, "big") + body)
        while rest:
            rest = rest[os.write(self.fd, rest) :]


class Environment:
    """Variables of the process and of the call that runs."""

    def __init__(self):
        self.base = dict(os.environ)

    def apply(self, variables):
        wanted = {**self.base, **variables}
        now = dict(os.environ)
        if now == wanted:
            return
        for name in now.keys() - wanted.keys():
            del os.environ[name]
        for name, value in wanted.items():
            if now.get(name) != value:
                os.environ[name] = value

    def keep(self, variables):
        """Keeps what loading changed: it belongs to the function as much as its global variables."""
        wanted = {**self.base, **variables}
        now = dict(os.environ)
        self.base.update((name, value) for name, value in now.items() if wanted.get(name) != value)
        for name in wanted.keys() - now.keys():
            self.base.pop(name, None)


class Worker:
    """State between calls."""

    def __init__(self, channel):
        self.channel = channel
        self.environment = Environment()
        self.home = os.getcwd()
        # Threads that loading started. They belong to the function.
        self.threads = set()
        self.failure = None
        # Id of the call that runs.
        self.running = None
        threading.excepthook = self._thread_failed

    def serve(self):
        version = ".".join(map(str, sys.version_info[:3]))
        self.channel.send(json.dumps({"ready": {"runtime": "python", "version": version}}))
        while frame := self.channel.receive():
            (kind, body), *_ = frame.items()
            if kind == "call":
                self.call(body)
            elif kind == "load":
                self.load(body)
            elif kind == "list":
                self.list(body)
            else:
                raise ValueError(f"unknown frame of the server: {kind}; load, list and call are valid")

    def load(self, frame):
        self._prepare(frame, lambda: assay_functions.load(frame["source"]), lambda _: '{"loaded":{}}')

    def list(self, frame):
        def text(evaluators):
            return '{"listed":{"evaluators":' + assay_values.encode(evaluators, "list of evaluators") + "}}"

        self._prepare(frame, lambda: assay_functions.list_evaluators(frame["path"]), text)

    def _prepare(self, frame, work, text):
        variables = frame.get("environment", {})
        self.environment.apply(variables)
        assay_functions.note_login(variables)
        self.failure = None
        try:
            # A function of the bundle may have left the directory before another one is loaded.
            if os.getcwd() != self.home:
                os.chdir(self.home)
            value = work()
            self.environment.keep(variables)
            self.home = os.getcwd()
            self.threads = set(threading.enumerate())
            if self.failure is not None:
                raise self.failure
            answer = text(value)
        except BaseException as error:
            self._send_error(None, error, 0)
            return
        assay_values.flush_console()
        self.channel.send(answer)

    def call(self, frame):
        call_id = self.running = frame["id"]
        variables = frame.get("environment", {})
        self.environment.apply(variables)
        self.failure = None
        try:
            if os.getcwd() != self.home:
                os.chdir(self.home)
            assay_functions.refresh_login(variables)
            value, notes = assay_functions.call(frame, self._report(call_id), self._loop_failed)
            if self.failure is not None:
                raise self.failure
            value = assay_values.encode(value, "result of the function")
            if notes is not None:
                notes = assay_values.encode(notes, "value of the task's hooks")
        except BaseException as error:
            left = self._left()
            # After a failure outside of the awaited call, other parts of it may still run.
            self._send_error(call_id, error, left if self.failure is None else max(left, 1))
            return
        finally:
            self.running = None
        left = self._left()
        assay_values.flush_console()
        notes = "" if notes is None else f',"notes":{notes}'
        self.channel.send(f'{{"result":{{"id":{json.dumps(call_id)},"left":{left}{notes},"value":{value}}}}}')

    def _report(self, call_id):
        def report(event):
            if self.running != call_id:
                raise RuntimeError("progress can only be reported while the task runs")
            data = assay_values.encode(event, "progress event")
            self.channel.send(f'{{"progress":{{"id":{json.dumps(call_id)},"data":{data}}}}}')

        return report

    def _send_error(self, call_id, error, left):
        assay_values.flush_console()
        failure = {**assay_values.describe(error), "left": left}
        self.channel.send(json.dumps({"error": failure if call_id is None else {"id": call_id, **failure}}))

    def _left(self):
        """Counts what may disturb the next call: threads, tasks and child processes."""
        left = assay_functions.pending_tasks()
        if threading.active_count() > 1:
            alive = [thread for thread in threading.enumerate() if not thread.daemon and thread not in self.threads]
            left += sum(not self._is_harmless(thread) for thread in alive)
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            left += 1
        except ChildProcessError:
            pass
        return left

    @staticmethod
    def _is_harmless(thread):
        """Whether a thread is the main one, or waits in a pool for work."""
        frame = sys._current_frames().get(thread.ident)
        idle = frame is not None and frame.f_code.co_name == "_worker" and "concurrent" in frame.f_code.co_filename
        return thread is threading.main_thread() or idle

    def _thread_failed(self, arguments):
        if arguments.exc_type is not SystemExit:
            self.failure = self.failure or arguments.exc_value or arguments.exc_type()

    def _loop_failed(self, loop, context):
        if context.get("exception") is None:
            loop.default_exception_handler(context)
        self.failure = self.failure or context.get("exception")


def main():
    assay_network.install()
    channel = Channel(int(os.environ.pop("ASSAY_CHANNEL", "3")))
    os.environ.pop("ASSAY_STREAMS", None)
    # Users see their output while the call runs.
    sys.stdout.reconfigure(line_buffering=True)
    # Modules of user code come first, and this directory is only there for the worker.
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry != own] + [own]
    Worker(channel).serve()
    # Threads that user code left behind would keep the process alive.
    os._exit(0)


if __name__ == "__main__":
    main()
