"""The SBOM in CycloneDX JSON: the crates in the program, and the npm packages in its web console.

Crates are those that cargo resolves for the program on its machine. Crates that only build it are
`excluded`.
"""

import json
import re
import subprocess
import time
import tomllib
import uuid

from common import EPOCH, Elf, Release, fail

CONSOLE = "node/console/package-lock.json"
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def resolved(release, elf):
    command = [
        "cargo",
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--manifest-path",
        str(release.root / "Cargo.toml"),
    ]
    command += ["--filter-platform", f"{elf.machine}-unknown-linux-gnu"]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(ran.stdout)


def reached(metadata, start):
    """Returns the ids of the packages in the program, and those of the packages that build it."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    macros = {
        package["id"]
        for package in metadata["packages"]
        if any("proc-macro" in target["kind"] for target in package["targets"])
    }

    def walk(begin, kinds):
        found, left = set(), list(begin)
        while left:
            one = left.pop()
            if one in found:
                continue
            found.add(one)
            for dependency in nodes[one]["deps"]:
                if any(kind["kind"] in kinds for kind in dependency["dep_kinds"]):
                    left.append(dependency["pkg"])
        return found

    def without_macros(begin):
        found, left = set(), [begin]
        while left:
            one = left.pop()
            if one in found or one in macros:
                continue
            found.add(one)
            left += [dep["pkg"] for dep in nodes[one]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        return found

    inside = without_macros(start)
    return inside, walk([start], {None, "build"}) - inside


def checksums(release):
    lock = tomllib.loads(release.text("Cargo.lock"))
    return {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}


def licence(expression):
    # Old manifests separate alternatives by a slash.
    return [{"expression": re.sub(r"\s*/\s*", " OR ", expression)}] if expression else None


def component(package, scope, sums):
    name, version = package["name"], package["version"]
    is_ours = package["source"] is None
    if not is_ours and package["source"] != REGISTRY:
        fail(f"{name} {version} is from {package['source']}: only crates of the registry have an address in the SBOM")
    # Crates of the workspace are not published, so they have no address.
    reference = f"assay/{name}@{version}" if is_ours else f"pkg:cargo/{name}@{version}"
    found = {"type": "library", "bom-ref": reference, "name": name, "version": version, "scope": scope}
    if not is_ours:
        found |= {"purl": reference, "hashes": [{"alg": "SHA-256", "content": sums[name, version]}]}
    if licences := licence(package["license"]):
        found["licenses"] = licences
    return found


def console(release):
    for path, package in json.loads(release.text(CONSOLE))["packages"].items():
        if not path or package.get("dev") or package.get("peer"):
            continue
        # An alias has its own name beside the path.
        name, version = package.get("name") or path.rsplit("node_modules/", 1)[1], package["version"]
        reference = f"pkg:npm/{name.replace('@', '%40')}@{version}"
        found = {
            "type": "library",
            "bom-ref": f"{reference}#{path}",
            "name": name,
            "version": version,
            "scope": "required",
        }
        found |= {"purl": reference}
        if licences := licence(package.get("license")):
            found["licenses"] = licences
        yield found


def main():
    release = Release.from_arguments()
    elf = Elf.read(release.program)
    metadata = resolved(release, elf)
    packages = {package["id"]: package for package in metadata["packages"]}
    program = next(package for package in packages.values() if package["name"] == "assay" and package["source"] is None)
    sums = checksums(release)
    inside, builds = reached(metadata, program["id"])
    scopes = {one: "required" for one in inside - {program["id"]}} | {one: "excluded" for one in builds}
    components = [component(packages[one], scope, sums) for one, scope in scopes.items()]
    components = sorted(components + list(console(release)), key=lambda found: found["bom-ref"])
    references = {one: component(packages[one], "required", sums)["bom-ref"] for one in scopes} | {
        program["id"]: "assay"
    }
    depends = {
        references[node["id"]]: sorted({references[dep] for dep in node["dependencies"] if dep in references})
        for node in metadata["resolve"]["nodes"]
        if node["id"] in references
    }
    identity = json.dumps(components, sort_keys=True) + release.version + str(EPOCH)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, identity)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
            "component": {
                "type": "application",
                "bom-ref": "assay",
                "name": "assay",
                "version": release.version,
                "licenses": licence(program["license"]),
            },
        },
        "components": components,
        "dependencies": [{"ref": one, "dependsOn": depends[one]} for one in sorted(depends)],
    }
    path = release.out / f"assay-{release.version}.cdx.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


main()
