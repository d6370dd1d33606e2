"""A trace through several processes: each goes on below what the one before handed over, as a slug of either form or as headers."""

import json
import os
import subprocess
import sys

import braintrust
from reading import fetch, same

# Programs that go on with a trace: this one, and its sibling in JavaScript where the test has it.
PROGRAMS = {"python": [sys.executable, __file__]}
if "ASSAY_JAVASCRIPT" in os.environ:
    PROGRAMS["javascript"] = json.loads(os.environ["ASSAY_JAVASCRIPT"])
# Ids and slugs of the third version, and of the fourth.
FORMS = {"v3": {"BRAINTRUST_LEGACY_IDS": "true"}, "v4": {}}
VERSION = {"v3": "Aw", "v4": "BA"}
# The SDK writes the hexadecimal id of a trace into a slug of the third version as a UUID, which is another trace's. What is there
# keeps its own when it is updated with that.
LOSSY = ("v4", "v3")


def go_on(name, handed):
    """What every program does with what it was handed: a span below it, one below that, and it hands that over."""
    parent = handed if isinstance(handed, str) else braintrust.extract_trace_context(handed)
    with braintrust.start_span(name=name, parent=parent, input={"by": name}) as span:
        with span.start_span(name=f"{name}-below") as below:
            below.log(output="there")
            return {"slug": below.export(), "headers": below.inject()}


if sys.argv[1] == "go-on":
    braintrust.login()
    told = {name: go_on(name, handed) for name, handed in json.loads(sys.argv[2]).items()}
    braintrust.flush()
    print(json.dumps(told))
    sys.exit()


def handed_over(program, form, handed):
    """What another process hands over in its turn, by the names of its spans."""
    environment = {key: value for key, value in os.environ.items() if key != "BRAINTRUST_LEGACY_IDS"} | FORMS[form]
    command = [*PROGRAMS[program], "go-on", json.dumps(handed)]
    done = subprocess.run(command, env=environment, check=True, timeout=60, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


if sys.argv[1] == "begin":
    # One form for a whole process: what it begins, and who goes on with it, in this form and in the other.
    form, project = sys.argv[2:]
    logger = braintrust.init_logger(project=project)
    # The slug of what has no id yet names it.
    by_name = logger.export()
    logger_id = logger.project.id
    experiment = braintrust.init(project=project, experiment=form, set_current=False)
    for program in PROGRAMS:
        for other in FORMS:
            kind = f"{form}-{program}-{other}"
            case = experiment.start_span(name=f"{kind}-case", input=kind)
            with logger.start_span(name=f"{kind}-root", propagated_event={"metadata": {"propagated": kind}}) as root:
                logger.flush()
                assert root.export().startswith(VERSION[form]), root.export()
                handed = {"second": root.export(), "within": case.export(), "by-name": by_name, "by-object": experiment.export()}
                told = handed_over(program, other, {f"{kind}-{name}": slug for name, slug in handed.items()})
                slug = told[f"{kind}-second"]["slug"]
                assert slug.startswith(VERSION[other]), slug
                # And back.
                if (form, other) != LOSSY:
                    with braintrust.start_span(name=f"{kind}-third", parent=slug) as third:
                        third.log(output="back")
                braintrust.update_span(slug, metadata={"updated": "from the first"})
            case.end()
        if form == "v4":
            with logger.start_span(name=f"{program}-headers") as root:
                headers = root.inject()
                same("traceparent", headers["traceparent"].split("-")[1:3], [root.root_span_id, root.span_id])
                told = handed_over(program, "v4", {f"{program}-served": headers})
                back = braintrust.extract_trace_context(told[f"{program}-served"]["headers"])
                with braintrust.start_span(name=f"{program}-back", parent=back):
                    pass
    braintrust.flush()
    print(json.dumps({"logger": logger_id, "experiment": experiment.id}))
    sys.exit()

project = f"python-tracing-{sys.argv[1]}"
begun = {}
for form in FORMS:
    environment = {**os.environ, **FORMS[form]}
    done = subprocess.run([sys.executable, __file__, "begin", form, project], env=environment, check=True, timeout=300, stdout=subprocess.PIPE, text=True)
    begun[form] = json.loads(done.stdout.splitlines()[-1])
same("one project", begun["v3"]["logger"], begun["v4"]["logger"])
rows = {row["span_attributes"]["name"]: row for row in fetch("project_logs", begun["v3"]["logger"]).values()}
same("spans", len(rows), len(PROGRAMS) * (4 * (4 + 2) - 1 + 4))


def below(rows, name, parent):
    row, above = rows[name], rows[parent]
    same(f"{name} below {parent}", (row["span_parents"], row["root_span_id"], row["is_root"]), ([above["span_id"]], above["root_span_id"], False))


def root(rows, name):
    same(f"{name} is a root", (rows[name]["is_root"], rows[name]["span_parents"]), (True, None))


for form in FORMS:
    cases = {row["span_attributes"]["name"]: row for row in fetch("experiment", begun[form]["experiment"]).values()}
    same("cases", len(cases), len(PROGRAMS) * 2 * 5)
    for program in PROGRAMS:
        for other in FORMS:
            kind = f"{form}-{program}-{other}"
            names = [f"{kind}-{name}" for name in ("root", "second", "second-below", "third")][: 3 if (form, other) == LOSSY else 4]
            root(rows, names[0])
            for parent, name in zip(names, names[1:]):
                below(rows, name, parent)
            for name in names:
                same("propagated", rows[name]["metadata"]["propagated"], kind)
            same("input and output", (rows[names[1]]["input"], rows[names[2]]["output"]), ({"by": names[1]}, "there"))
            same("back", [rows[name]["output"] for name in names[3:]], ["back"] * len(names[3:]))
            same("updated", rows[names[2]]["metadata"], {"propagated": kind, "updated": "from the first"})
            same("the form of its ids", [len(rows[name]["span_id"]) for name in names[:2]], [{"v3": 36, "v4": 16}[of] for of in (form, other)])
            root(cases, f"{kind}-case")
            below(cases, f"{kind}-within", f"{kind}-case")
            below(cases, f"{kind}-within-below", f"{kind}-within")
            for place, name in ((rows, f"{kind}-by-name"), (cases, f"{kind}-by-object")):
                root(place, name)
                below(place, f"{name}-below", name)
for program in PROGRAMS:
    names = [f"{program}-{name}" for name in ("headers", "served", "served-below", "back")]
    root(rows, names[0])
    for parent, name in zip(names, names[1:]):
        below(rows, name, parent)
print("tracing: ok")
