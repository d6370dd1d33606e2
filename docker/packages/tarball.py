"""The tarball: the program, the systemd unit and the papers, for machines that the other packages are not for."""

from common import Elf, Entry, Release, write_tar_gz


def main():
    release = Release.from_arguments()
    elf = Elf.read(release.program)
    name = f"assay-{release.version}"
    files = [
        Entry(f"{name}/assay", release.program, 0o755),
        Entry(f"{name}/assay.service", release.root / "docker/assay.service"),
        Entry(f"{name}/LICENSE", release.root / "LICENSE"),
        Entry(f"{name}/README.md", release.root / "README.md"),
        Entry(f"{name}/CHANGELOG.md", release.root / ".github/CHANGELOG.md"),
        Entry(f"{name}/sbom.cdx.json", release.out / f"{name}.cdx.json"),
    ]
    write_tar_gz(release.out / f"{name}-linux-{elf.machine}.tar.gz", files)


main()
