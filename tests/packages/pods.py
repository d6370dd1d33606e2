"""The chart as pods: what a StatefulSet and a kubelet do with its manifests, on network namespaces of this machine.

Usage: pods.py CHART IMAGE HELM. Forms a cluster of three, restarts a pod, grows to five, restarts all, and replaces a
lost volume. Commands, probes, mounts and users are those of the rendered manifests.
"""

import base64
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import yaml
from containers import Container, Image, Network, Sandbox
from traces import Assay, request, until

RELEASE, NAMESPACE = "trial", "observability"
PARTS_SECONDS_MAX = 240
INIT_RESTARTS_MAX = 3
NAME = f"{RELEASE}-assay"
NODES = f"{NAME}-nodes.{NAMESPACE}.svc"


def render(helm, chart, replicas, *options):
    words = [helm, "template", RELEASE, chart, "--namespace", NAMESPACE, "--set", f"replicas={replicas}", *options]
    ran = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return {(found["kind"], found["metadata"]["name"]): found for found in yaml.safe_load_all(ran.stdout) if found}


def expanded(text, values):
    return re.sub(r"\$\(([A-Z_]+)\)", lambda found: values.get(found[1], found[0]), text)


class Release:
    """The manifests that are in force, with the Secret of the first rendering, as `lookup` would keep it."""

    def __init__(self, manifests):
        self.secret = manifests["Secret", NAME]
        self.apply(manifests)

    def apply(self, manifests):
        self.manifests = manifests | {("Secret", NAME): self.secret}
        self.set = self.manifests["StatefulSet", NAME]["spec"]
        self.pod = self.set["template"]["spec"]

    def secret_value(self, key):
        return base64.b64decode(self.secret["data"][key])

    def value_of(self, source, pod):
        """The value of an environment variable from elsewhere."""
        match source:
            case {"fieldRef": {"fieldPath": "metadata.name"}}:
                return pod
            case {"secretKeyRef": {"name": name, "key": key}} if name == NAME:
                return self.secret_value(key).decode()
            case {"configMapKeyRef": {"name": name, "key": key}}:
                return self.manifests["ConfigMap", name]["data"][key]
        raise SystemExit(f"an environment variable is from {source}, which this does not know")

    def environment(self, container, pod):
        values = {}
        for entry in container.get("env", []):
            values[entry["name"]] = (
                self.value_of(entry["valueFrom"], pod) if "valueFrom" in entry else expanded(entry["value"], values)
            )
        return values


class Pod:
    """A pod of the StatefulSet, with its volume."""

    def __init__(self, world, number):
        self.world, self.number, self.name = world, number, f"{NAME}-{number}"
        self.volume = world.folder / f"data-{self.name}"
        self.container = None
        self.sandbox = Sandbox(world.network)
        self.make_volume()

    def make_volume(self):
        """A file system of ext4 as a kubelet hands it over: of root, with a group that may write."""
        (self.volume / "lost+found").mkdir(parents=True, mode=0o700)
        os.chown(self.volume, 0, self.security()["fsGroup"])
        self.volume.chmod(0o2775)

    def lose_volume(self):
        shutil.rmtree(self.volume)
        self.make_volume()

    def security(self):
        return self.world.release.pod["securityContext"]

    def mounts(self, container):
        volumes = {volume["name"]: volume for volume in self.world.release.pod["volumes"]}
        for mount in container["volumeMounts"]:
            mode = "ro" if mount.get("readOnly") else "rw"
            source = self.volume if mount["name"] == "data" else self.secret(volumes[mount["name"]])
            yield source, mount["mountPath"], mode

    def secret(self, volume):
        secret = volume["secret"]
        folder = self.world.folder / "secrets" / volume["name"]
        folder.mkdir(parents=True, exist_ok=True)
        for item in secret["items"]:
            path = folder / item["path"]
            path.write_bytes(self.world.release.secret_value(item["key"]))
            path.chmod(secret["defaultMode"])
            os.chown(path, 0, self.security()["fsGroup"])
        return folder

    def run(self, container, command=None, suffix=""):
        release, image = self.world.release, self.world.image
        assert container["securityContext"]["readOnlyRootFilesystem"] and self.security()["runAsNonRoot"]
        environment = release.environment(container, self.name)
        command = command or container.get("command", image.config["Entrypoint"]) + container.get("args", [])
        command = [expanded(word, environment) for word in command]
        mounts = list(self.mounts(container))
        for _, target, _ in mounts:
            (image.root / target.lstrip("/")).mkdir(parents=True, exist_ok=True)
        log = self.world.folder / f"{self.name}.{container['name']}{suffix}.log"
        return Container(image, self.sandbox, command, environment, mounts, self.security()["runAsUser"], log)

    def start(self):
        for container in self.world.release.pod["initContainers"]:
            for attempt in range(INIT_RESTARTS_MAX + 1):
                one = self.run(container)
                if one.process.wait(PARTS_SECONDS_MAX) == 0:
                    break
                assert attempt < INIT_RESTARTS_MAX, f"{self.name}: {container['name']} failed: {one.said()[-2000:]}"
        (container,) = self.world.release.pod["containers"]
        self.container = self.run(container)
        self.wait(container["startupProbe"])
        self.wait(container["readinessProbe"])

    def probe(self, probe):
        """Whether a probe succeeds, as a kubelet asks."""
        (container,) = self.world.release.pod["containers"]
        get, ports = probe["httpGet"], {port["name"]: port["containerPort"] for port in container["ports"]}
        request(f"{get['scheme'].lower()}://{self.sandbox.address}:{ports[get['port']]}{get['path']}")
        return True

    def wait(self, probe):
        def attempt():
            assert self.container.process.poll() is None, f"{self.name} ended: {self.container.said()[-2000:]}"
            return self.probe(probe)

        until(PARTS_SECONDS_MAX, f"the probe {probe['httpGet']['path']} of {self.name}", attempt)

    def stop(self):
        code = self.container.stop(self.world.release.pod["terminationGracePeriodSeconds"])
        assert code == 0, f"{self.name} ended with {code}: {self.container.said()[-2000:]}"

    def execute(self, *command):
        """`kubectl exec`: a command beside the container, with the same environment and mounts."""
        (container,) = self.world.release.pod["containers"]
        one = self.run(container, list(command), f".exec-{time.monotonic_ns()}")
        code = one.process.wait(PARTS_SECONDS_MAX)
        assert code == 0, f"{command}: {one.said()}"
        return one.said()

    def assay(self):
        return Assay(f"http://{self.sandbox.address}:8000", self.world.release.secret_value("api-key").decode())


class World:
    """The cluster of Kubernetes."""

    def __init__(self, chart, image, helm, folder):
        self.folder, self.helm, self.chart = pathlib.Path(folder), helm, chart
        self.image = Image(image, self.folder / "root")
        self.network = Network(self.folder)
        self.release = Release(render(helm, chart, 3))
        self.pods = []
        self.begun = time.monotonic()

    def note(self, text):
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    def upgrade(self, replicas, *options):
        self.release.apply(render(self.helm, self.chart, replicas, "--is-upgrade", *options))

    def names(self):
        """The names that the DNS of a cluster would have."""
        pods = [(pod.sandbox.address, f"{pod.name}.{NODES}") for pod in self.pods]
        nodes = [(pod.sandbox.address, NODES) for pod in self.pods]
        self.network.names(pods + nodes + [(self.pods[0].sandbox.address, f"{NAME}.{NAMESPACE}.svc")])

    def scale(self):
        """Makes the pods that are missing. With the policy Parallel they start beside each other."""
        assert self.release.set["podManagementPolicy"] == "Parallel"
        made = [Pod(self, number) for number in range(len(self.pods), self.release.set["replicas"])]
        self.pods += made
        self.names()
        self.start(made)

    def start(self, pods):
        failed = []

        def one(pod):
            try:
                pod.start()
            except BaseException as error:
                failed.append(f"{pod.name}: {error}")

        threads = [threading.Thread(target=one, args=[pod]) for pod in pods]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed, "\n".join(failed)

    def settled(self, active):
        """Waits as the notes of the chart say, and returns the id of the cluster."""
        said = self.pods[-1].execute("assay", "cluster", "status", "--wait")
        nodes = re.findall(r"^node (\d+)\s+active", said, re.MULTILINE)
        assert len(nodes) == active and said.rstrip().endswith("settled"), said
        return re.search(r"^cluster (\S+),", said, re.MULTILINE)[1]

    def log(self, pod, name):
        until(PARTS_SECONDS_MAX, f"a write at {pod.name}", lambda: pod.assay().export(name))

    def has(self, *names):
        for pod in self.pods:
            until(PARTS_SECONDS_MAX, f"{names} at {pod.name}", lambda pod=pod: set(names) <= pod.assay().names())

    def test_pods(self):
        """`helm test`."""
        for (kind, name), manifest in self.release.manifests.items():
            if kind == "Pod":
                (container,) = manifest["spec"]["containers"]
                user = manifest["spec"]["securityContext"]["runAsUser"]
                command = container["command"] + container["args"]
                one = Container(self.image, self.pods[-1].sandbox, command, {}, [], user, self.folder / f"{name}.log")
                assert one.process.wait(PARTS_SECONDS_MAX) == 0, one.said()

    def close(self):
        for pod in self.pods:
            if pod.container:
                pod.container.kill()
            pod.sandbox.remove()


def image_alone(world):
    """The image without the chart, as `docker run` starts it, and its check of health."""
    image = world.image
    names = {name.split("/")[-1] for name in image.names}
    assert not names & {"sh", "bash", "dash"}, "the image has a shell"
    user = int(image.config["User"].split(":")[0])
    (volume,) = image.config["Volumes"]
    folder = world.folder / "volume"
    folder.mkdir(mode=0o700)
    os.chown(folder, user, user)
    sandbox, mounts = Sandbox(world.network), [(folder, volume, "rw")]
    command = image.config["Entrypoint"] + image.config["Cmd"]
    node = Container(image, sandbox, command, {}, mounts, user, world.folder / "image.log")
    try:
        ready = Assay(f"http://{sandbox.address}:8000", "").ready
        until(PARTS_SECONDS_MAX, "the start of the image", ready)
        kind, *check = image.config["Healthcheck"]["Test"]
        assert kind == "CMD"
        checked = Container(image, sandbox, check, {}, [], user, world.folder / "health.log")
        assert checked.process.wait(PARTS_SECONDS_MAX) == 0, checked.said()
        assert node.stop(PARTS_SECONDS_MAX) == 0, node.said()
    finally:
        node.kill()
        sandbox.remove()
    world.note("the image has served by its entrypoint, and its check of health agreed")


def story(world):
    image_alone(world)
    world.scale()
    world.note("three pods are ready")
    cluster = world.settled(3)
    world.note("every shard has its replicas")
    world.log(world.pods[1], "first")
    world.has("first")
    world.test_pods()

    last = world.pods[2]
    last.stop()
    world.note("one pod is stopped")
    world.log(world.pods[0], "meanwhile")
    last.start()
    world.has("first", "meanwhile")
    world.note("it is ready again")

    world.upgrade(5)
    world.scale()
    world.settled(5)
    world.note("five nodes are settled")

    stops = [threading.Thread(target=pod.stop) for pod in world.pods]
    for thread in stops:
        thread.start()
    for thread in stops:
        thread.join()
    world.note("all pods are stopped")
    world.start(world.pods)
    assert world.settled(5) == cluster
    world.has("first", "meanwhile")
    world.note("all pods are ready again, with their data")

    lost_volume(world, cluster)
    for pod in world.pods:
        pod.stop()


def lost_volume(world, cluster):
    """The first pod, which founded the cluster, loses its volume. It may found again, and must not."""
    first = world.pods[0]
    first.stop()
    first.lose_volume()
    world.upgrade(5, "--set", "cluster.found=always")
    first.start()
    said = world.pods[1].execute("assay", "cluster", "replace", "1", "6")
    assert world.settled(5) == cluster, said
    world.has("first", "meanwhile")
    world.note("the first pod has joined its cluster again after the loss of its volume")


def main():
    chart, image, helm = sys.argv[1:]
    if "ASSAY_PODS_NETWORK" not in os.environ:
        # The bridge is in a namespace of its own, so that this machine's network stays as it is.
        os.environ["ASSAY_PODS_NETWORK"] = "yes"
        os.execvp("unshare", ["unshare", "--net", sys.executable, "-B", *sys.argv])
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        world = World(chart, image, helm, folder)
        try:
            story(world)
        finally:
            world.close()


main()
