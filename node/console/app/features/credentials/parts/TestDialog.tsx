// The dialog that calls a model with one secret alone, to see whether the provider takes it.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type FormEvent } from "react";
import { isAbort, problemOf } from "../../../lib/errors";
import { testSecret, type Secret, type TestAnswer } from "../../../api/secrets";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Icon } from "../../../design/Icon";
import { Marked } from "../../../design/Marked";
import { ModelPicker } from "../../../design/ModelPicker";
import { duration, exactCount, money } from "../../../lib/numbers";
import { announce } from "../../../lib/store";
import { isEmbedding, namedModels } from "../form";
import { modelsQuery } from "../queries";
import { Name } from "./Form";
import style from "./TestDialog.module.css";

type State =
  | { readonly step: "ready" }
  | { readonly step: "calling" }
  | { readonly step: "answered"; readonly answer: TestAnswer }
  | { readonly step: "failed"; readonly text: string; readonly code: string | null };

function Answer({ answer }: { readonly answer: TestAnswer }) {
  const facts: readonly (readonly [string, string])[] = [
    ["Took", duration(answer.milliseconds)],
    ["Model", answer.model],
    ["Tokens", `${exactCount(answer.promptTokens)} in, ${exactCount(answer.completionTokens)} out`],
    ["Cost", answer.cost === null ? "This model has no price." : money(answer.cost)],
    ["Answer", answer.text === "" ? "-" : answer.text],
  ];
  return (
    <section aria-label="Answer" className={style["outcome"]}>
      <p className={style["good"]}>
        <Icon name="check" />
        The provider answered.
      </p>
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Marked text={value} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** Makes the call, which ends with the dialog. */
function useTest(organization: string, secret: Secret) {
  const [state, setState] = useState<State>({ step: "ready" });
  const control = useRef<AbortController | null>(null);
  const stop = (): void => control.current?.abort();
  useEffect(() => stop, []);
  const start = async (model: string): Promise<void> => {
    const own = new AbortController();
    control.current = own;
    setState({ step: "calling" });
    try {
      const answer = await testSecret(organization, secret, model, isEmbedding(secret.metadata, model), own.signal);
      setState({ step: "answered", answer });
      announce("The provider answered.");
    } catch (error) {
      if (isAbort(error)) return setState({ step: "ready" });
      const { text, code } = problemOf(error, 0);
      setState({ step: "failed", text: text.slice(0, 1).toUpperCase() + text.slice(1), code });
    }
  };
  return { state, start, stop };
}

interface TestDialogProps {
  readonly organization: string;
  readonly secret: Secret;
  readonly onClose: () => void;
}

export function TestDialog({ organization, secret, onClose }: TestDialogProps) {
  const own = namedModels(secret.metadata);
  const found = useQuery({ ...modelsQuery(organization, secret), enabled: own.length === 0 });
  const models = own.length > 0 ? own : (found.data ?? []);
  const [chosen, setChosen] = useState<string | null>(null);
  const { state, start, stop } = useTest(organization, secret);
  const model = chosen ?? models[0] ?? "";
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (model.trim() !== "" && state.step !== "calling") void start(model.trim());
  };
  return (
    <Dialog title="Test call" onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <Name name={secret.name} />
        <p>A short call through the gateway, with this secret alone.</p>
        <ModelPicker value={model} onChange={setChosen} models={models} />
        {state.step === "answered" && <Answer answer={state.answer} />}
        {state.step === "failed" && (
          <div className={style["outcome"]} role="alert">
            <p className={style["bad"]}>
              <Icon name="warning" />
              The call failed{state.code !== null && <code>{state.code}</code>}
            </p>
            <p>
              <Marked text={state.text} />
            </p>
          </div>
        )}
        <DialogActions>
          <Button onClick={onClose}>Close</Button>
          {state.step === "calling" ? (
            <Button onClick={stop}>Stop</Button>
          ) : (
            <Button type="submit" look="primary" aria-disabled={model.trim() === ""}>
              Call
            </Button>
          )}
        </DialogActions>
        {state.step === "calling" && <p role="status">The provider is called…</p>}
      </form>
    </Dialog>
  );
}
