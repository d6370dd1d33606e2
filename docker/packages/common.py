"""What all packages share: arguments, facts about the program, and archives that are the same in every build."""

import dataclasses
import gzip
import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile

# Names of a machine: that of the ELF header, of wheels, of Debian, of images.
MACHINES = {
    "Advanced Micro Devices X86-64": ("x86_64", "amd64", "amd64"),
    "AArch64": ("aarch64", "arm64", "arm64"),
}
# Libraries of a glibc system, which manylinux allows and every Debian has.
LIBRARIES = {
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])


def fail(text):
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {text}")


@dataclasses.dataclass(frozen=True)
class Release:
    """A program and the checkout that it is packed with."""

    root: pathlib.Path
    program: pathlib.Path
    version: str
    out: pathlib.Path

    @staticmethod
    def from_arguments():
        root, program, version, out = sys.argv[1:]
        return Release(pathlib.Path(root), pathlib.Path(program), version, pathlib.Path(out))

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8")


@dataclasses.dataclass(frozen=True)
class Elf:
    """Facts about a program that say where it runs."""

    machine: str
    debian_machine: str
    image_machine: str
    # Newest version of glibc whose symbols it uses, as (2, 34).
    glibc: tuple
    libraries: tuple

    @staticmethod
    def read(program):
        def read(*options):
            command = ["readelf", "--wide", *options, str(program)]
            return subprocess.run(
                command, check=True, capture_output=True, text=True, env={"LC_ALL": "C", **os.environ}
            ).stdout

        machine = re.search(r"^\s*Machine:\s*(.+?)\s*$", read("--file-header"), re.MULTILINE)
        if machine is None or machine[1] not in MACHINES:
            found = machine and machine[1]
            fail(f"{program} is for the machine {found}, and packages are made for {', '.join(MACHINES)}")
        versions = {
            tuple(map(int, found.split(".")))
            for found in re.findall(r"\bGLIBC_(\d+(?:\.\d+)+)", read("--version-info"))
        }
        if not versions:
            fail(f"{program} uses no symbols of glibc: packages are made of programs for glibc")
        libraries = tuple(re.findall(r"\(NEEDED\).*\[(.+)\]", read("--dynamic")))
        strange = sorted(set(libraries) - LIBRARIES)
        if strange:
            allowed = ", ".join(sorted(LIBRARIES))
            fail(f"{program} needs {', '.join(strange)}, which not every system has; allowed are {allowed}")
        return Elf(*MACHINES[machine[1]], max(versions)[:2], libraries)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file, or a folder if it has no content, of an archive. `content` is bytes or the path of a file."""

    name: str
    content: object = None
    mode: int = 0o644
    owner: int = 0
    link: str = ""

    def info(self):
        info = tarfile.TarInfo(self.name)
        info.mode, info.uid, info.gid, info.mtime = self.mode, self.owner, self.owner, EPOCH
        if self.link:
            info.type, info.linkname = tarfile.SYMTYPE, self.link
        elif self.content is None:
            info.type = tarfile.DIRTYPE
        else:
            info.size = len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size
        return info

    def open(self):
        return io.BytesIO(self.content) if isinstance(self.content, bytes) else open(self.content, "rb")


def with_folders(entries):
    """Returns the entries by name, with the folders that they are in."""
    found = {entry.name: entry for entry in entries}
    for name in list(found):
        for folder in pathlib.PurePosixPath(name).parents:
            if str(folder) != ".":
                found.setdefault(str(folder), Entry(str(folder), mode=0o755))
    return [found[name] for name in sorted(found)]


def write_tar(target, entries):
    """Writes an uncompressed archive to an open file."""
    with tarfile.open(fileobj=target, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for entry in with_folders(entries):
            info = entry.info()
            if info.isreg():
                with entry.open() as content:
                    archive.addfile(info, content)
            else:
                archive.addfile(info)


def write_tar_gz(path, entries):
    # Without a name and with the date of the commit in the header.
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 6, file, EPOCH) as target:
        write_tar(target, entries)
