"""Renders the chart, and checks it: chart.py CHART HELM PROGRAM

Manifests are valid by the schemas of the oldest Kubernetes that the chart allows and of the newest known one. The
program accepts their environment. Values that mean nothing are refused.
"""

import pathlib
import re
import subprocess
import sys

import kubernetes_validate
import yaml

OLDEST = "1.30"
# No schema of Kubernetes has these.
OF_OPERATORS = {"ServiceMonitor"}
WRONG = [
    "replicas=0",
    "replicaz=3",
    "cluster.found=maybe",
    "publicUrl=assay.example.com/path",
    "settings.listen=x",
    "service.port=0",
]
WRONG += ["metrics.serviceMonitor.enabled=true", "ingress.enabled=true", "secrets.apiKey=short"]


def helm(program, chart, *options):
    words = [program, "template", "trial", chart, "--namespace", "observability", *options]
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def rendered(*arguments):
    ran = helm(*arguments)
    assert ran.returncode == 0, ran.stderr
    return [found for found in yaml.safe_load_all(ran.stdout) if found]


def check_schemas(manifests):
    for version in [OLDEST, kubernetes_validate.latest_version()]:
        for manifest in manifests:
            if manifest["kind"] not in OF_OPERATORS:
                kubernetes_validate.validate(manifest, version, strict=True)
    return f"{len(manifests)} manifests are valid in Kubernetes {OLDEST} and {version}"


def check_environment(manifests, program):
    """The program knows every variable of a container, and takes its value."""
    (stateful,) = [found for found in manifests if found["kind"] == "StatefulSet"]
    pod = stateful["spec"]["template"]["spec"]
    for container in pod["containers"]:
        values = {}
        for entry in container["env"]:
            text = entry.get("value", "a-value-from-elsewhere-0123456789")
            values[entry["name"]] = re.sub(r"\$\(([A-Z_]+)\)", lambda found, values=values: values[found[1]], text)
        ran = subprocess.run([program, "config"], env=values, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert ran.returncode == 0, ran.stderr
        for name, value in values.items():
            if name.startswith("ASSAY_STORE_"):
                assert value in ran.stdout, f"{name} has no effect"


def main():
    chart, program, assay = sys.argv[1:]
    full = pathlib.Path(__file__).with_name("values.yaml")
    for options in [[], ["--values", str(full)], ["--set", "replicas=1,antiAffinity=none,serviceAccount.create=false"]]:
        manifests = rendered(program, chart, *options)
        print(check_schemas(manifests))
        check_environment(manifests, assay)
    values = {path.name for path in pathlib.Path(chart).glob("*.yaml")}
    assert {"Chart.yaml", "values.yaml"} <= values, values
    for wrong in WRONG:
        assert helm(program, chart, "--set", wrong).returncode != 0, f"{wrong} is taken"
    founder = [
        found["data"]["founder"] for found in rendered(program, chart, "--is-upgrade") if found["kind"] == "ConfigMap"
    ]
    assert founder == [""], f"an upgrade may found a cluster: {founder}"
    subprocess.run([program, "lint", "--strict", "--quiet", chart], check=True)


main()
