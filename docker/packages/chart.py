"""The archive of the Helm chart, which `helm install` takes as a file."""

from common import Entry, Release, write_tar_gz


def main():
    release = Release.from_arguments()
    folder = release.root / "docker/chart"
    files = [path for path in folder.rglob("*") if path.is_file()]
    entries = [Entry(f"assay/{path.relative_to(folder)}", path) for path in files]
    write_tar_gz(release.out / f"assay-chart-{release.version}.tgz", entries)


main()
