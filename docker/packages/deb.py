"""The .deb, by dpkg-deb from a folder: the program, the unit, the environment of the unit, and maintainer scripts.

cargo-deb would build the program itself and is not part of a Rust toolchain; dpkg-deb is there wherever .deb files are.
"""

import gzip
import os
import subprocess
import tempfile

from common import EPOCH, Elf, Release, fail

SCRIPTS = ["postinst", "prerm", "postrm"]
ENVIRONMENT = "etc/assay/environment"


def unit(release):
    """The unit with the folders of a package."""
    text = release.text("docker/assay.service")
    if "ExecStart=/usr/local/bin/assay serve\n" not in text:
        fail("docker/assay.service does not start /usr/local/bin/assay serve")
    head = text.index("[Unit]")
    return text[head:].replace("/usr/local/", "/usr/")


def control(release, elf, installed_bytes):
    depends = [f"libc6 (>= {elf.glibc[0]}.{elf.glibc[1]})", "init-system-helpers (>= 1.52)"]
    if "libgcc_s.so.1" in elf.libraries:
        depends.insert(1, "libgcc-s1")
    template = release.text("docker/packages/debian/control")
    values = {
        "VERSION": release.version,
        "ARCHITECTURE": elf.debian_machine,
        "INSTALLED_KIB": str(-(-installed_bytes // 1024)),
        "DEPENDS": ", ".join(depends),
    }
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template


class Folder:
    """The root of the package on this machine."""

    def __init__(self, path):
        self.path = path
        self.bytes = 0

    def write(self, name, content, mode=0o644):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        content = content.encode() if isinstance(content, str) else content
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)
        if not name.startswith("DEBIAN/"):
            self.bytes += len(content)

    def date(self):
        """Gives every file the date of the commit."""
        for folder, _, files in os.walk(self.path, topdown=False):
            for path in [os.path.join(folder, file) for file in files] + [folder]:
                os.utime(path, (EPOCH, EPOCH))


def main():
    release = Release.from_arguments()
    elf = Elf.read(release.program)
    debian = release.root / "docker/packages/debian"
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        folder = Folder(path)
        folder.write("usr/bin/assay", release.program.read_bytes(), 0o755)
        folder.write("usr/lib/systemd/system/assay.service", unit(release))
        # Secrets of the node may be in it.
        folder.write(ENVIRONMENT, (debian / "environment").read_bytes(), 0o600)
        # For administrators to copy, since it weakens the unit.
        folder.write("usr/share/assay/functions.conf", (release.root / "docker/assay-functions.conf").read_bytes())
        folder.write("usr/share/doc/assay/copyright", (debian / "copyright").read_bytes())
        folder.write("usr/share/doc/assay/README.md", release.text("README.md"))
        folder.write(
            "usr/share/doc/assay/sbom.cdx.json", (release.out / f"assay-{release.version}.cdx.json").read_bytes()
        )
        changes = gzip.compress(release.text(".github/CHANGELOG.md").encode(), 9, mtime=EPOCH)
        folder.write("usr/share/doc/assay/changelog.gz", changes)
        folder.write("DEBIAN/control", control(release, elf, folder.bytes))
        folder.write("DEBIAN/conffiles", f"/{ENVIRONMENT}\n")
        for script in SCRIPTS:
            folder.write(f"DEBIAN/{script}", (debian / script).read_bytes(), 0o755)
        folder.date()
        target = release.out / f"assay_{release.version}_{elf.debian_machine}.deb"
        # Every Debian and Ubuntu with a glibc of such programs reads zstd, which takes a third of the time of xz.
        words = ["dpkg-deb", "--root-owner-group", "-Zzstd", "-z12", "--threads-max=1", "--build", path, str(target)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


main()
