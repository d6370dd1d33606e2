"""The image without an engine: an archive that `docker load` and `podman load` take, of one layer.

The last stage of the Dockerfile says what is in it and how it starts. Its base is assembled from this machine instead
of a registry: a C library, certificates and users, as in the image that the Dockerfile names.
"""

import gzip
import hashlib
import io
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import time

from common import EPOCH, Elf, Entry, Release, fail, write_tar

DOCKERFILE = "docker/Dockerfile"
BASE = "gcr.io/distroless/cc-debian12:nonroot"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
NONROOT = 65532
SECONDS = {"s": 1, "m": 60}


def last_stage(text):
    """Returns the instructions of the last stage, with their arguments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    split = [line.strip().partition(" ") for line in joined if line.strip()]
    all_of_them = [(name, rest.strip()) for name, _, rest in split]
    begin = max(place for place, (name, _) in enumerate(all_of_them) if name == "FROM")
    if all_of_them[begin][1] != BASE:
        fail(f"{DOCKERFILE} is on {all_of_them[begin][1]}, and this assembles {BASE}")
    return all_of_them[begin + 1 :]


def libraries(program):
    """Returns the dynamic linker and the libraries of the program on this machine, by their path."""
    ran = subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True)
    missing = re.findall(r"^\s*(\S+) => not found", ran.stdout, re.MULTILINE)
    if missing:
        fail(f"this machine has no {', '.join(missing)}, which {program} needs")
    return re.findall(r"(/\S+) \(0x", ran.stdout)


def base(program):
    """Returns the files of the base."""
    if not pathlib.Path(CERTIFICATES).exists():
        fail(f"{CERTIFICATES} is missing: install ca-certificates")
    users = f"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{NONROOT}:{NONROOT}:nonroot:/home/nonroot:/sbin/nologin\n"
    groups = f"root:x:0:\nnonroot:x:{NONROOT}:\n"
    found = [
        Entry("etc/passwd", users.encode()),
        Entry("etc/group", groups.encode()),
        Entry("etc/nsswitch.conf", b"hosts: files dns\n"),
        Entry("etc/ssl/certs/ca-certificates.crt", pathlib.Path(CERTIFICATES).read_bytes()),
        Entry("home/nonroot", mode=0o700, owner=NONROOT),
        Entry("tmp", mode=0o1777),
    ]
    for path in libraries(program):
        found.append(Entry(path.lstrip("/"), pathlib.Path(path).read_bytes(), 0o755))
    return found


def copied(words, program):
    """Returns the entry of a COPY."""
    options = [word for word in words if word.startswith("--")]
    source, target = [word for word in words if not word.startswith("--")]
    stage = next((option.removeprefix("--from=") for option in options if option.startswith("--from=")), "")
    owner = next((option for option in options if option.startswith("--chown=")), "--chown=0").removeprefix("--chown=")
    name, owner = target.lstrip("/"), int(owner.split(":")[0])
    match f"{stage}:{source}":
        case "build:/assay":
            return Entry(name, program.read_bytes(), 0o755, owner)
        case "tools:/bin/wget":
            return Entry(name, pathlib.Path(shutil.which("busybox")).read_bytes(), 0o755, owner)
        # Made by the first stage.
        case "build:/data" | "build:/join":
            return Entry(name, None, 0o700, owner)
        case other:
            fail(f"{DOCKERFILE} copies {other}, which this cannot make")


def nanoseconds(text):
    return int(text[:-1]) * SECONDS[text[-1]] * 1_000_000_000


def healthcheck(rest):
    options, _, command = rest.partition(" CMD ")
    given = dict(option.removeprefix("--").split("=") for option in options.split())
    found = {"Test": ["CMD", *json.loads(command)], "Retries": int(given.pop("retries"))}
    names = {"interval": "Interval", "timeout": "Timeout", "start-period": "StartPeriod"}
    return found | {names[name]: nanoseconds(value) for name, value in given.items()}


def image(instructions, program):
    """Returns the entries of the layer and the configuration of the image."""
    entries = base(program)
    config = {
        "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", f"SSL_CERT_FILE={CERTIFICATES}"]
    }
    config |= {"WorkingDir": "/home/nonroot", "Volumes": {}, "ExposedPorts": {}}
    for name, rest in instructions:
        match name:
            case "COPY":
                entries.append(copied(shlex.split(rest), program))
            case "ENV":
                config["Env"] += shlex.split(rest)
            case "USER":
                config["User"] = rest
            case "VOLUME":
                config["Volumes"][rest] = {}
            case "EXPOSE":
                config["ExposedPorts"] |= {f"{port}/tcp": {} for port in rest.split()}
            case "STOPSIGNAL":
                config["StopSignal"] = rest
            case "HEALTHCHECK":
                config["Healthcheck"] = healthcheck(rest)
            case "ENTRYPOINT":
                config["Entrypoint"] = json.loads(rest)
            case "CMD":
                config["Cmd"] = json.loads(rest)
            case other:
                fail(f"{DOCKERFILE} has {other} in its last stage, which this does not know")
    return entries, config


def digest(content):
    return hashlib.sha256(content).hexdigest()


def main():
    release = Release.from_arguments()
    elf = Elf.read(release.program)
    entries, config = image(last_stage(release.text(DOCKERFILE)), release.program)
    plain = io.BytesIO()
    write_tar(plain, entries)
    layer = gzip.compress(plain.getvalue(), 6, mtime=EPOCH)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
    described = {
        "architecture": elf.image_machine,
        "os": "linux",
        "created": created,
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(plain.getvalue())}"]},
        "history": [{"created": created, "created_by": "docker/build-packages"}],
    }
    blobs, name = {}, f"assay:{release.version}"

    def blob(content, kind):
        blobs[f"blobs/sha256/{digest(content)}"] = content
        return {
            "mediaType": f"application/vnd.oci.image.{kind}",
            "digest": f"sha256:{digest(content)}",
            "size": len(content),
        }

    def coded(value):
        return json.dumps(value, separators=(",", ":")).encode()

    layer_of, config_of = blob(layer, "layer.v1.tar+gzip"), blob(coded(described), "config.v1+json")
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config_of,
        "layers": [layer_of],
    }
    manifest_of = blob(coded(manifest), "manifest.v1+json")
    manifest_of["annotations"] = {
        "io.containerd.image.name": f"docker.io/library/{name}",
        "org.opencontainers.image.ref.name": release.version,
    }

    def path_of(described_blob):
        return f"blobs/sha256/{described_blob['digest'].removeprefix('sha256:')}"

    # Engines before OCI archives read this list.
    older = [{"Config": path_of(config_of), "RepoTags": [name], "Layers": [path_of(layer_of)]}]
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest_of]}
    files = {
        **blobs,
        "oci-layout": coded({"imageLayoutVersion": "1.0.0"}),
        "index.json": coded(index),
        "manifest.json": coded(older),
    }
    with open(release.out / f"assay-{release.version}-image-{elf.image_machine}.tar", "wb") as target:
        write_tar(target, [Entry(path, content) for path, content in files.items()])


main()
