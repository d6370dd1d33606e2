// A test run: the input, the answer while it arrives, and what it took.
import { useState } from "react";
import type { Invocation } from "../../../api/invoke";
import { valueOf } from "../../../api/invoke";
import { Button } from "../../../design/Button";
import { Chip } from "../../../design/Chip";
import { classes } from "../../../design/classes";
import { Marked } from "../../../design/Marked";
import { JsonField } from "../../../design/MessageEditorFields";
import { asText } from "../../../lib/json";
import { useLinks } from "../../../lib/links";
import { duration, exactCount, money } from "../../../lib/numbers";
import { filledInput, missingIn, variablesIn } from "../draft";
import type { Desk } from "../useDesk";
import { useRun, type Run } from "../useRun";
import style from "./parts.module.css";
import runStyle from "./run.module.css";

/** The test of a prompt, which stays while other panels are shown. */
export function useTest(desk: Desk) {
  const { place, newest, edits, isNewest, shown, data } = desk;
  const [typed, setInput] = useState<unknown>(null);
  const [isKept, setKept] = useState(true);
  const { run, start, stop } = useRun(place.organization);
  const input = typed ?? filledInput(data, null);
  const begin = (): void => {
    if (shown === undefined) return;
    const isEdited = isNewest && edits !== null;
    const invocation: Invocation = {
      what: isEdited
        ? { kind: "prompt", prompt: data, name: newest.name, ...(newest.type === "" ? {} : { functionType: newest.type }) }
        : { kind: "saved", id: newest.id, version: shown.version },
      projectId: place.projectId,
      input,
      ...(isKept ? { parent: { object_type: "project_logs", object_id: place.projectId } } : {}),
    };
    void start(invocation);
  };
  return { input, setInput, isKept, setKept, run, begin, stop };
}

export type Test = ReturnType<typeof useTest>;

/** Whether a failure means that no secret serves the model. */
const lacksSecret = (text: string): boolean => /provider secret|AI secret|no secret/i.test(text);

function Failure({ text, desk }: { readonly text: string; readonly desk: Desk }) {
  const links = useLinks();
  return (
    <div className={runStyle["failure"]} role="alert">
      <p>
        <strong>The run failed.</strong> <Marked text={text} />
      </p>
      {lacksSecret(text) && (
        <a href={links.page("settings", desk.place.organization, "", ["secrets"])}>Add a secret of the provider in the settings</a>
      )}
    </div>
  );
}

function Figures({ run, desk }: { readonly run: Run; readonly desk: Desk }) {
  const links = useLinks();
  const { use, first, took, gathered } = run;
  const { head } = gathered;
  const figures: readonly (readonly [string, string])[] = [
    ["Latency", took === null ? "" : duration(took)],
    ["First piece", first === null ? "" : duration(first)],
    ["Tokens", use?.tokens == null ? "" : exactCount(use.tokens)],
    ["Cost", use?.cost == null ? "" : money(use.cost)],
    ["Secret", head?.endpoint ?? ""],
  ];
  return (
    <div className={runStyle["figures"]}>
      <dl className={style["facts"]}>
        {figures.filter(([, value]) => value !== "").map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {head?.isCached === true && <Chip>from the cache</Chip>}
      {use !== null && <a href={links.trace(desk.place.organization, desk.place.project, use.root)}>Open the trace</a>}
    </div>
  );
}

function Answer({ run, desk }: { readonly run: Run; readonly desk: Desk }) {
  const { gathered, failure, isRunning, isStopped } = run;
  const value = valueOf(gathered);
  const text = value === "" ? "" : asText(value);
  const failed = failure?.text ?? gathered.error;
  return (
    <section aria-label="Answer" className={runStyle["answer"]}>
      {gathered.reasoning !== "" && (
        <details>
          <summary>Reasoning</summary>
          <pre className={style["output"]}><Marked text={gathered.reasoning} /></pre>
        </details>
      )}
      {gathered.tools.map(({ id, name, state }) => (
        <p key={id} className={style["faint"]}>
          Tool {name}: {state}
        </p>
      ))}
      {(text !== "" || isRunning) && (
        <pre className={style["output"]} tabIndex={0} role="region" aria-label="Output" aria-busy={isRunning}>
          <Marked text={text} />
          {isRunning && <span className={runStyle["caret"]} />}
        </pre>
      )}
      {failed !== null && <Failure text={failed} desk={desk} />}
      <p className={style["faint"]} role="status">
        {isRunning ? "Running" : isStopped ? "Stopped." : failed === null ? "Done." : ""}
      </p>
      {!isRunning && <Figures run={run} desk={desk} />}
    </section>
  );
}

const anything = (value: unknown): { readonly value: unknown } => ({ value });

export function RunPanel({ desk, test }: { readonly desk: Desk; readonly test: Test }) {
  const { input, setInput, isKept, setKept, run, begin, stop } = test;
  const missing = missingIn(desk.data, input);
  const isRunning = run?.isRunning === true;
  return (
    <div className={classes(style["panelBody"], runStyle["panel"])}>
      <JsonField label="Input" value={input} read={anything} onValue={setInput} rows={4} />
      {missing.length > 0 && (
        <p className={style["hint"]}>
          <span>No value for {missing.map((name) => `{{${name}}}`).join(", ")}.</span>
          <Button look="quiet" onClick={() => setInput(filledInput(desk.data, input))}>
            Add {missing.length === 1 ? "it" : "them"}
          </Button>
        </p>
      )}
      {variablesIn(desk.data).length === 0 && <p className={style["hint"]}>The prompt has no variables.</p>}
      <label className={style["check"]}>
        <input type="checkbox" checked={isKept} onChange={(event) => setKept(event.currentTarget.checked)} />
        Keep the run in the logs, which count its tokens and cost
      </label>
      <div>
        {isRunning ? (
          <Button key="stop" icon="stop" onClick={stop}>
            Stop
          </Button>
        ) : (
          <Button key="run" look="primary" icon="play" title="Run (ctrl enter)" onClick={begin}>
            {desk.isNewest && desk.edits !== null ? "Run the edits" : "Run"}
          </Button>
        )}
      </div>
      {run !== null && <Answer run={run} desk={desk} />}
    </div>
  );
}
