// The page that shows how to send traces, and notices the first one.
import type { Organization } from "../../api/schema";
import { Code } from "../../design/Code";
import { Field } from "../../design/Field";
import { navigate } from "../../lib/router";
import { isQuotable } from "../../lib/quoting";
import { newestProject } from "./arrival";
import { AgentSteps } from "./parts/AgentSteps";
import { ArrivalLine } from "./parts/ArrivalLine";
import { KeyMaker } from "./parts/KeyMaker";
import { useWatch } from "./queries";
import style from "./screen.module.css";
import { environment, lessons } from "./snippets";
import { welcomeUrl, type WelcomeState } from "./url";

const FIRST_PROJECT = "quickstart";

function Setting({ origin }: { readonly origin: string }) {
  return (
    <Code
      label="Setting"
      chosen="shell"
      onChoose={() => undefined}
      snippets={[
        { id: "shell", title: "Shell", before: "Put your key in the place of the dots.", code: environment(origin) },
      ]}
    />
  );
}

interface WelcomeScreenProps {
  readonly state: WelcomeState;
  readonly organization: Organization;
}

export function WelcomeScreen({ state, organization }: WelcomeScreenProps) {
  const { projects, arrival } = useWatch(organization.name, state.project);
  const suggested = newestProject(projects?.projects ?? [])?.name ?? projects?.projects[0]?.name ?? FIRST_PROJECT;
  const isUsable = isQuotable(state.project) || state.project === "";
  const project = isUsable && state.project !== "" ? state.project : suggested;
  const id = projects?.projects.find((one) => one.name === project)?.id ?? null;
  const origin = window.location.origin;
  const change = (changed: Partial<WelcomeState>): void =>
    navigate(welcomeUrl.write({ ...state, ...changed }), "replace");
  return (
    <div className={style["screen"]}>
      <h1 tabIndex={-1}>Send traces</h1>
      <div className={style["columns"]}>
        <ol className={style["steps"]}>
          <li className={style["step"]}>
            <h2>1. Make a key</h2>
            <KeyMaker key={organization.id} organization={organization.name} />
          </li>
          <li className={style["step"]}>
            <h2>2. Set the key and the address</h2>
            <Setting origin={origin} />
          </li>
          <li className={style["step"]}>
            <h2>3. Send a trace</h2>
            <div className={style["project"]}>
              <Field
                label="Project"
                name="project"
                autoComplete="off"
                placeholder={suggested}
                value={state.project}
                onChange={(event) => change({ project: event.currentTarget.value })}
                hint="A project that does not exist yet is made by its first trace."
                fault={isUsable ? null : "This name has characters that cannot be seen. The code below leaves it out."}
              />
            </div>
            <Code
              label="Language"
              chosen={state.language}
              onChoose={(language) => change({ language })}
              snippets={lessons(origin, { name: project, id })}
            />
          </li>
          <li className={style["step"]}>
            <h2>4. Connect a coding agent, if you use one</h2>
            <AgentSteps origin={origin} />
          </li>
        </ol>
        <div className={style["aside"]}>
          <ArrivalLine arrival={arrival} organization={organization.name} project={project} />
        </div>
      </div>
    </div>
  );
}
