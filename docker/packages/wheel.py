"""The wheel: the program as a script, so that `pip install` puts it on the search path of its environment.

It is written with the standard library: a wheel is a zip file with a list of its contents, and tools that make wheels
of Rust crates would build the program themselves.
"""

import base64
import hashlib
import shutil
import time
import zipfile

from common import EPOCH, Elf, Entry, Release


def metadata(release):
    head = [
        "Metadata-Version: 2.4",
        "Name: assay",
        f"Version: {release.version}",
        "Summary: Self-hosted tracing and evaluation server for AI applications, compatible with Braintrust's SDKs",
        "License-Expression: Apache-2.0",
        "License-File: LICENSE",
        "Requires-Python: >=3.8",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: Rust",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(head) + "\n\n" + release.text("README.md")


def entries(release, tag):
    name = f"assay-{release.version}"
    info = f"{name}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: docker/build-packages\nRoot-Is-Purelib: false\nTag: {tag}\n"
    return info, [
        Entry(f"{name}.data/scripts/assay", release.program, 0o755),
        Entry(f"{info}/METADATA", metadata(release).encode()),
        Entry(f"{info}/WHEEL", wheel.encode()),
        Entry(f"{info}/licenses/LICENSE", release.root / "LICENSE"),
        Entry(f"{info}/sboms/assay.cdx.json", release.out / f"assay-{release.version}.cdx.json"),
    ]


def add(archive, entry):
    """Adds a file and returns its line of RECORD."""
    # The oldest date of a zip file is in 1980.
    date = time.gmtime(max(EPOCH, 315_532_800))[:6]
    info = zipfile.ZipInfo(entry.name, date)
    info.external_attr = (0o100000 | entry.mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    with entry.open() as content:
        digest = (
            hashlib.file_digest(content, "sha256")
            if hasattr(hashlib, "file_digest")
            else hashlib.sha256(content.read())
        )
        size = content.seek(0, 2)
        content.seek(0)
        with archive.open(info, "w") as target:
            shutil.copyfileobj(content, target)
    coded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
    return f"{entry.name},sha256={coded},{size}\n"


def main():
    release = Release.from_arguments()
    elf = Elf.read(release.program)
    tag = f"py3-none-manylinux_{elf.glibc[0]}_{elf.glibc[1]}_{elf.machine}"
    info, files = entries(release, tag)
    with zipfile.ZipFile(release.out / f"assay-{release.version}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        record = "".join(add(archive, entry) for entry in files) + f"{info}/RECORD,,\n"
        add(archive, Entry(f"{info}/RECORD", record.encode()))


main()
