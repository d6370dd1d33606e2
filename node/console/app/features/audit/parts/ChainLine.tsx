// The state of the chain in a line: being verified, whole, or broken at an entry.
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from "react";
import type { AuditScope } from "../../../api/audit";
import { problemOf } from "../../../lib/errors";
import { Button } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { Copy } from "../../../design/Copy";
import { Field } from "../../../design/Field";
import { Icon } from "../../../design/Icon";
import { Popover } from "../../../design/Popover";
import { useOpener } from "../../../design/PopoverLogic";
import { exactCount } from "../../../lib/numbers";
import { announce } from "../../../lib/store";
import { readSeal, sealText, type Fault, type Seal } from "../chain";
import { verify, type Verifying } from "../verifying";
import { faultWords, faultyEntry } from "../words";
import style from "./ChainLine.module.css";

interface Chain {
  readonly state: Verifying;
  readonly start: (isWhole: boolean, kept: Seal | null) => void;
  readonly stop: () => void;
}

/** What a state says aloud; progress says nothing. */
function spokenOf(state: Verifying): string {
  if (state.step === "failed") return "The chain could not be verified.";
  if (state.step !== "done") return "";
  return state.fault === null ? `The chain is verified to entry ${state.seal.sequence}.` : faultWords(state.fault);
}

/** Verifies the chain when the log is opened, and again whenever `newest` shows that there are more entries. */
export function useChain(scope: AuditScope, newest: number): Chain {
  const [state, setState] = useState<Verifying>({ step: "running", done: 0, total: 0 });
  const control = useRef<AbortController | null>(null);
  const begin = (isWhole: boolean, isAsked: boolean, kept: Seal | null): void => {
    control.current?.abort();
    const own = new AbortController();
    control.current = own;
    const tell = (next: Verifying): void => {
      setState(next);
      const words = spokenOf(next);
      if (words !== "") announce(words);
    };
    void verify(scope, { isWhole, isAsked, kept, signal: own.signal, tell });
  };
  const isBehind = state.step === "done" && state.fault === null && state.seal.sequence < newest;
  useEffect(() => {
    begin(false, false, null);
    return () => control.current?.abort();
  }, [scope.organizationId]);
  useEffect(() => {
    if (isBehind) begin(false, false, null);
  }, [isBehind]);
  return {
    state,
    start: (isWhole, kept) => begin(isWhole, true, kept),
    stop: () => {
      control.current?.abort();
      setState({ step: "stopped" });
    },
  };
}

/** Checks that an entry that somebody kept is still in the log. */
function SealCheck({ onCheck }: { readonly onCheck: (seal: Seal) => void }) {
  const button = useRef<HTMLButtonElement>(null);
  const panel = useOpener();
  const [text, setText] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const seal = readSeal(text);
    if (seal === null) return setFault("A seal is a number and a hash of 64 letters and digits.");
    panel.close();
    onCheck(seal);
  };
  return (
    <>
      <button {...panel.opener} ref={button} type="button" className={style["quiet"]}>
        Check a seal
      </button>
      {panel.isOpen && (
        <Popover label="Check a seal" anchor={button} onClose={panel.close}>
          <form className={style["check"]} onSubmit={submit} noValidate>
            <Field
              label="Seal"
              autoComplete="off"
              spellCheck={false}
              value={text}
              fault={fault}
              hint="A seal that you copied earlier. If its entry is gone or differs, the log was cut or written again."
              onChange={(event) => setText(event.currentTarget.value)}
            />
            <Button type="submit" look="primary">
              Check
            </Button>
          </form>
        </Popover>
      )}
    </>
  );
}

interface OutcomeProps {
  readonly seal: Seal;
  readonly fault: Fault | null;
  readonly hrefOf: (sequence: number) => string;
  readonly children: ReactNode;
}

function Outcome({ seal, fault, hrefOf, children }: OutcomeProps) {
  if (fault === null) {
    return (
      <>
        <span className={style["good"]}>
          <Icon name="check" />
          {seal.sequence === 0 ? "The log is empty" : `Chain verified to #${exactCount(seal.sequence)}`}
        </span>
        {seal.sequence > 0 && (
          <span className={style["seal"]}>
            <code title={seal.hash}>{seal.hash.slice(0, 12)}</code>
            <Copy text={sealText(seal)} what="the seal" />
          </span>
        )}
        {children}
      </>
    );
  }
  const entry = faultyEntry(fault);
  return (
    <>
      <span className={style["bad"]}>
        <Icon name="warning" />
        Chain broken. {faultWords(fault)}
      </span>
      {entry > 0 && <a href={hrefOf(entry)}>Show entry #{entry}</a>}
      <span className={style["seal"]}>{seal.sequence > 0 && `Whole up to #${exactCount(seal.sequence)}.`}</span>
      {children}
    </>
  );
}

interface ChainLineProps {
  readonly chain: Chain;
  /** The address that opens an entry. */
  readonly hrefOf: (sequence: number) => string;
}

function Content({ chain: { state, start, stop }, hrefOf }: ChainLineProps) {
  switch (state.step) {
    case "running":
      return (
        <>
          <label className={style["progress"]}>
            Verifying the chain
            <progress max={Math.max(state.total, 1)} value={state.done} />
          </label>
          {state.total > 0 && `#${exactCount(state.done)} of #${exactCount(state.total)}`}
          <Button look="quiet" onClick={stop}>
            Stop
          </Button>
        </>
      );
    case "waiting":
      return <Button onClick={() => start(false, null)}>Verify {exactCount(state.total)} entries</Button>;
    case "stopped":
      return (
        <>
          The verification was stopped.
          <Button onClick={() => start(false, null)}>Verify the chain</Button>
        </>
      );
    case "failed":
      return (
        <>
          <span className={style["bad"]}>The chain could not be verified. {problemOf(state.error, 0).text}</span>
          <Button onClick={() => start(false, null)}>Verify again</Button>
        </>
      );
    case "done":
      return (
        <Outcome seal={state.seal} fault={state.fault} hrefOf={hrefOf}>
          <span className={style["ways"]}>
            <button type="button" className={style["quiet"]} onClick={() => start(true, null)}>
              Verify again
            </button>
            <SealCheck onCheck={(seal) => start(true, seal)} />
          </span>
        </Outcome>
      );
  }
}

export function ChainLine(props: ChainLineProps) {
  const { state } = props.chain;
  const isBroken = state.step === "failed" || (state.step === "done" && state.fault !== null);
  return (
    <section aria-label="Chain" className={classes(style["line"], isBroken && style["broken"])}>
      <Content {...props} />
    </section>
  );
}
