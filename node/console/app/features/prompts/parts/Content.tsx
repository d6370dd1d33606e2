// What a version consists of, as a form or as text, or what changed between two versions.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../../api/gate";
import { isRecord } from "../../../api/narrow";
import type { PromptRecord } from "../../../api/prompts";
import { readingOf } from "../../../api/queries";
import { Button } from "../../../design/Button";
import { Diff } from "../../../design/Diff";
import { Empty } from "../../../design/Empty";
import { Loaded } from "../../../design/Loaded";
import { JsonField } from "../../../design/MessageEditorFields";
import type { PromptFields } from "../../../design/MessageEditorLogic";
import { Skeleton } from "../../../design/Skeleton";
import { Tabs } from "../../../design/Tabs";
import { versionText } from "../draft";
import { versionQuery } from "../queries";
import { LOOKS } from "../url";
import type { Desk } from "../useDesk";
import { Form } from "./Form";
import { FunctionView } from "./FunctionView";
import style from "./parts.module.css";
import { ChangedTimes, VersionTime } from "./Words";

const LINES = [[30], [48], [40], [52], [36]];

const asData = (value: unknown): { readonly value: PromptFields } | string =>
  isRecord(value) ? { value } : "The content of a prompt is a JSON object.";

interface ShownProps {
  readonly desk: Desk;
  readonly shown: PromptRecord;
}

function Shown({ desk, shown }: ShownProps) {
  const isPrompt = shown.kind === "prompt";
  const isReadOnly = !desk.isNewest;
  switch (desk.state.look) {
    case "form":
      return isPrompt ? <Form {...{ desk, isReadOnly }} /> : <FunctionView record={shown} />;
    case "json":
      return isPrompt ? (
        <JsonField label="Content" isLabelShown={false} value={desk.data} read={asData} onValue={desk.change} isReadOnly={isReadOnly} rows={24} />
      ) : (
        <JsonField label="Content" isLabelShown={false} value={shown.whole} read={asData} onValue={() => undefined} isReadOnly rows={24} />
      );
    case "yaml":
      return (
        <pre className={style["output"]} tabIndex={0} role="region" aria-label="Content in YAML">
          {versionText(shown, desk.data)}
        </pre>
      );
  }
}

function Compared({ desk, shown }: ShownProps) {
  const { newest, state, place } = desk;
  const isNewest = state.compare === newest.version;
  const query = useQuery({ ...versionQuery(place, newest.id, state.compare), enabled: !isNewest });
  const before = isNewest ? newest : query.data;
  const hasEdits = desk.isNewest && desk.edits !== null;
  return (
    <>
      <div className={style["band"]}>
        <span>
          Changes from{" "}
          {hasEdits ? (
            <>
              <VersionTime version={state.compare} /> to the edits
            </>
          ) : (
            <ChangedTimes from={state.compare} to={shown.version} />
          )}
        </span>
        <Button onClick={() => desk.show({ version: state.compare === newest.version ? "" : state.compare, compare: shown.version, environment: "" })}>Swap</Button>
        <Button onClick={() => desk.show({ compare: "" })}>Close the comparison</Button>
      </div>
      {before !== undefined ? (
        <div className={style["tabBody"]}>
          <Diff before={versionText(before)} after={versionText(shown, desk.data)} />
        </div>
      ) : (
        <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
          {() => null}
        </Loaded>
      )}
    </>
  );
}

const TITLES = { form: "Form", json: "JSON", yaml: "YAML" } as const;

export function Content({ desk }: { readonly desk: Desk }) {
  const { state, shown, asked } = desk;
  if (state.environment !== "" && state.version === "" && desk.isPinnedRead && !desk.pinned.some(({ slug }) => slug === state.environment)) {
    return (
      <Empty action={<Button onClick={() => desk.show({ environment: "" })}>Show the newest version</Button>}>
        The environment {state.environment} has no version of {desk.newest.name}.
      </Empty>
    );
  }
  if (shown === undefined) {
    return (
      <Loaded reading={readingOf(asked)} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(() => asked.refetch())}>
        {() => null}
      </Loaded>
    );
  }
  if (state.compare !== "") return <Compared {...{ desk, shown }} />;
  const tabs = LOOKS.map((look) => ({ id: look, title: look === "form" && shown.kind !== "prompt" ? "Overview" : TITLES[look] }));
  return (
    <Tabs
      label="Show the content as"
      tabs={tabs}
      chosen={state.look}
      onChoose={(id) => desk.show({ look: LOOKS.find((look) => look === id) ?? "form" })}
    >
      <div className={style["tabBody"]}>
        {/* another version is another form */}
        <Shown key={shown.version} {...{ desk, shown }} />
      </div>
    </Tabs>
  );
}
