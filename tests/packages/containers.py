"""Containers without an engine: the image as a root file system, a network namespace for each pod, and a chroot.

What a runtime would do is done by programs of util-linux and iproute2: a read-only root, mounts, a process table,
another user without capabilities, no new privileges. Needs root.
"""

import gzip
import io
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import time

PREFIX = "assay-pods"
NETWORK = "10.77.0"
BRIDGE = "assay-pods0"
# Files that a runtime puts over those of the image.
OVER = ["etc/hosts", "etc/host.conf", "etc/resolv.conf"]
CHILD_SECONDS_MAX = 10
POLL_SECONDS = 0.05
TOOLS = "/usr/sbin:/usr/bin:/sbin:/bin"


def run(*words):
    ran = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {ran.stdout}")
    return ran.stdout


class Image:
    """The archive of an image, unpacked into a folder."""

    def __init__(self, archive, folder):
        with tarfile.open(archive) as files:

            def blob(descriptor):
                return files.extractfile(f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}").read()

            index = json.load(files.extractfile("index.json"))
            manifest = json.loads(blob(index["manifests"][0]))
            self.config = json.loads(blob(manifest["config"]))["config"]
            self.root = pathlib.Path(folder)
            self.root.mkdir(parents=True)
            for layer in manifest["layers"]:
                with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(layer)))) as content:
                    content.extractall(self.root)
        self.names = sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))
        for name in [*OVER, "proc/x", "dev/x"]:
            path = self.root / name
            path.parent.mkdir(exist_ok=True)
            if not name.endswith("/x"):
                path.touch()

    def environment(self):
        return dict(pair.split("=", 1) for pair in self.config["Env"])


class Network:
    """A bridge between pods. The namespace that calls this is on it as well."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.numbers = itertools.count(2)
        # Names resolve to several addresses, as those of headless services.
        (self.folder / "host.conf").write_text("multi on\n")
        (self.folder / "resolv.conf").write_text("")
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "address", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")

    def files(self):
        return {name: self.folder / pathlib.Path(name).name for name in OVER}

    def names(self, addresses):
        """Replaces all names: pairs of an address and a name. Containers that run see them at once."""
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for address, name in addresses)]
        # In place: containers have this file mounted.
        (self.folder / "hosts").write_text("\n".join(lines) + "\n")


class Sandbox:
    """The network of one pod."""

    def __init__(self, network):
        number = next(network.numbers)
        self.name, self.address = f"{PREFIX}-{os.getpid()}-{number}", f"{NETWORK}.{number}"
        self.network = network
        pair = f"asy{number}"
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", pair, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("ip", "link", "set", pair, "master", BRIDGE, "up")
        for words in [
            ["link", "set", "lo", "up"],
            ["address", "add", f"{self.address}/24", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
        ]:
            run("ip", "-netns", self.name, *words)

    def remove(self):
        run("ip", "netns", "delete", self.name)


# In a mount namespace of its own. $1 is the root; pairs of a source and a target follow, and after `--` the command.
MOUNTS = r"""
set -e
PATH=%(tools)s
root=$1
shift
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=0755 dev "$root/dev"
for device in null zero full random urandom; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
while [ "$1" != -- ]; do
    mount --bind "$1" "$root/$2"
    case $3 in ro) mount -o remount,bind,ro "$root/$2" ;; esac
    shift 3
done
shift
exec "$@"
"""


class Container:
    """A process in an image, as a kubelet starts it."""

    def __init__(self, image, sandbox, command, environment, mounts, user, log):
        if not command[0].startswith("/"):
            command = [shutil.which(command[0], path=image.environment()["PATH"]) or command[0], *command[1:]]
        pairs = [("ro", source, target) for target, source in sandbox.network.files().items()]
        pairs += [(mode, source, target.lstrip("/")) for source, target, mode in mounts]
        places = [str(word) for mode, source, target in pairs for word in (source, target, mode)]
        bounds = ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all,+sys_chroot,+setuid,+setgid"]
        inner = ["setpriv", *bounds, "chroot", f"--userspec={user}:{user}", "--groups=", str(image.root), *command]
        outer = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--propagation", "private"]
        script = MOUNTS % {"tools": TOOLS}
        # The environment of the image has its own search path, so tools are named in full.
        words = ["/usr/sbin/ip", "netns", "exec", sandbox.name, "/usr/bin/" + outer[0], *outer[1:]]
        words += ["/bin/sh", "-c", script, "sh", str(image.root), *places, "--", *inner]
        self.log = pathlib.Path(log)
        given = image.environment() | environment
        self.process = subprocess.Popen(
            words, env=given, stdin=subprocess.DEVNULL, stdout=self.log.open("ab"), stderr=subprocess.STDOUT
        )

    def said(self):
        return self.log.read_text(errors="replace")

    def inner(self):
        """The process id of the container's first process, as this machine numbers it."""
        end = time.monotonic() + CHILD_SECONDS_MAX
        while time.monotonic() < end:
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if children:
                return int(children[0])
            time.sleep(POLL_SECONDS)
        raise SystemExit(f"{self.log} has no process: {self.said()[-1000:]}")

    def stop(self, seconds_max):
        """Stops it as a kubelet does, and returns its exit code."""
        if self.process.poll() is None:
            os.kill(self.inner(), signal.SIGTERM)
        return self.process.wait(seconds_max)

    def kill(self):
        self.process.kill()
        self.process.wait()
