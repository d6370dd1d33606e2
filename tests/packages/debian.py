"""Runs on a fresh machine as root, under systemd: the life of a .deb. Usage: debian.py PREVIOUS PRESENT

It is installed, upgraded, allowed to run functions of code by the drop-in, removed, purged, installed again, and installed
where a directory is prepared for a cluster.
"""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from traces import Assay, request, until

UNIT = pathlib.Path("/usr/lib/systemd/system/assay.service")
ENVIRONMENT = pathlib.Path("/etc/assay/environment")
PROGRAM = pathlib.Path("/usr/bin/assay")
DATA = pathlib.Path("/var/lib/private/assay")
DROPIN = pathlib.Path("/etc/systemd/system/assay.service.d/functions.conf")
URL = "http://127.0.0.1:8000"
SECONDS_MAX = 60


def run(*words, allowed=(0,)):
    ran = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ran.returncode in allowed, f"{shlex.join(words)}: {ran.stdout}"
    return ran.stdout.strip()


def state():
    # Of these commands, other states than active and enabled end with other codes.
    is_active = run("systemctl", "is-active", "assay", allowed=range(5))
    is_enabled = run("systemctl", "is-enabled", "assay", allowed=range(5))
    return is_active, is_enabled.splitlines()[-1] if is_enabled else ""


def process():
    return run("systemctl", "show", "assay", "--property", "MainPID", "--value")


def journal():
    return run("journalctl", "--unit", "assay", "--output", "cat", "--no-pager")


class Story:
    """What was logged until now, and the key that the first start printed."""

    def __init__(self):
        self.node = None
        self.traces = set()

    def note(self, text):
        print(f"{text}: {', '.join(sorted(self.traces))}", flush=True)

    def serves(self, name):
        """Waits for the service, finds the traces of before, and logs another one."""
        assert UNIT.exists() and PROGRAM.exists()
        node = self.node or Assay(URL, "")
        try:
            until(SECONDS_MAX, "a ready service", node.ready)
        except SystemExit as error:
            raise AssertionError(f"{error}; {state()}; {journal()[-3000:]}") from error
        assert state() == ("active", "enabled"), state()
        if self.node is None:
            # The last one: the journal has keys of earlier installations as well.
            self.node = Assay(URL, re.findall(r"API key \(shown once\): (\S+)", journal())[-1])
        if self.traces:
            until(SECONDS_MAX, f"the traces {self.traces}", lambda: self.traces <= self.node.names())
        self.node.export(name)
        until(SECONDS_MAX, f"the trace {name}", lambda: name in self.node.names())
        self.traces.add(name)

    def sandbox(self):
        """What the node says of its sandbox for functions of code, once it has tried it."""

        def tried():
            return json.loads(request(f"{URL}/console/about", None, self.node.headers)).get("code")

        return until(SECONDS_MAX, "the trial of the sandbox", tried)

    def call(self):
        code = "def handler(output, expected):\n    return 1 if output == expected else 0"
        body = {"inline_context": {"runtime": "python", "version": "3.11"}, "function_type": "scorer", "code": code}
        body["input"] = {"output": "4", "expected": "4"}
        return request(f"{URL}/function/invoke", body, self.node.headers).decode()


def exposure():
    return run("systemd-analyze", "security", "assay", "--no-pager").splitlines()[-1].strip()


def installed_and_upgraded(story, previous, present):
    run("dpkg", "--install", previous)
    story.serves("before the upgrade")
    assert ENVIRONMENT.stat().st_mode & 0o777 == 0o600, "others can read the environment"
    assert DATA.stat().st_mode & 0o777 == 0o700, "others can enter the data"
    run("systemd-analyze", "verify", "--man=no", str(UNIT))
    story.note("installed")

    with ENVIRONMENT.open("a") as file:
        file.write("ASSAY_CONSOLE_OPERATORS='[\"owner@localhost\"]'\n")
    edited, before = ENVIRONMENT.read_text(), process()
    run("dpkg", "--install", present)
    story.serves("after the upgrade")
    assert process() != before, "the upgrade did not restart the service"
    assert ENVIRONMENT.read_text() == edited, "the upgrade replaced the environment"
    print(f"unit: {exposure()}; functions of code: {story.sandbox()}", flush=True)
    story.note("upgraded")
    return edited


def functions(story):
    DROPIN.parent.mkdir()
    shutil.copy("/usr/share/assay/functions.conf", DROPIN)
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", "assay")
    story.serves("with functions")
    sandbox = story.sandbox()
    print(f"unit with the drop-in: {exposure()}; functions of code: {sandbox}", flush=True)
    assert sandbox["strength"] == "full", sandbox
    score = json.loads(story.call())
    assert score == 1 or score.get("score") == 1, score
    story.note(f"a function of code has answered {score}")


def removed_and_purged(story, edited, present):
    run("dpkg", "--remove", "assay")
    assert not PROGRAM.exists() and not UNIT.exists() and state()[0] == "inactive", state()
    assert ENVIRONMENT.read_text() == edited, "the removal took the environment away"
    said = run("dpkg", "--purge", "assay")
    assert not ENVIRONMENT.exists()
    assert "The data of assay stays in /var/lib/assay" in said, said
    run("dpkg", "--install", present)
    story.serves("after a purge")
    story.note("removed, purged and installed again")


def prepared(present):
    """The guide's way to a node whose directory is prepared before its first start. It founds, for want of a cluster."""
    run("dpkg", "--purge", "assay")
    shutil.rmtree(DATA)
    pathlib.Path("/var/lib/assay").unlink()
    run("systemctl", "mask", "assay")
    run("dpkg", "--install", present)
    assert state()[0] == "inactive", state()
    run("systemctl", "unmask", "assay")
    properties = ["DynamicUser=yes", "User=assay", "StateDirectory=assay", "StateDirectoryMode=0700"]
    words = ["systemd-run", "--wait", "--pipe", *[f"--property={one}" for one in properties]]
    run(*words, "assay", "cluster", "init", "--data-dir", "/var/lib/assay", "--peer-address", "127.0.0.1:7400")
    with ENVIRONMENT.open("a") as file:
        file.write("ASSAY_CLUSTER_PEER_ADDRESS=127.0.0.1:7400\n")
    run("systemctl", "enable", "--now", "assay")
    story = Story()
    story.serves("as prepared")
    run("systemctl", "stop", "assay")
    result = run("systemctl", "show", "assay", "--property", "Result", "--value")
    assert result == "success", f"the stop ended with {result}"
    story.note("prepared before the first start")


def main():
    previous, present = sys.argv[1:]
    story = Story()
    edited = installed_and_upgraded(story, previous, present)
    functions(story)
    removed_and_purged(story, edited, present)
    prepared(present)


main()
