// The dialog that makes or changes a rule of retention: it counts what would be deleted, and has that number typed.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import { exactCount } from "../../../lib/numbers";
import { preferences } from "../../../lib/preferences";
import { clock, day, fullMoment, parseMoment } from "../../../lib/time";
import { previewQuery, saveRule, type Preview } from "../retentionQueries";
import { daysOf, isShort, KIND_NAMES, KINDS, sentenceOf, type Rule } from "../rules";
import style from "../section.module.css";
import { CheckedDialog, Select, type Choice } from "./Forms";

const REST_MS = 400;

/** A value, a moment after it came to rest. */
function useRested<Value>(value: Value): Value {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setRested(value), REST_MS);
    return () => window.clearTimeout(timer);
  }, [value]);
  return rested;
}

function Found({ preview }: { readonly preview: Preview }) {
  const oldest = parseMoment(preview.oldest);
  const { zone } = preferences.value;
  if (preview.count === 0 || oldest === null) return <>No row is that old now. Rows are deleted as they reach that age.</>;
  return (
    <>
      <b>{preview.count === 1 ? "1 row" : `${exactCount(preview.count)} rows`}</b> would be deleted
      {preview.isPartial && `, and those of more than the first ${exactCount(preview.objects)} objects`}. The oldest is of{" "}
      <span title={fullMoment(oldest)}>{`${day(oldest, zone)} ${clock(oldest, zone).slice(0, 5)}`}</span>. They cannot be
      restored, and versions from before cannot be read any more.
    </>
  );
}

interface CountedProps {
  readonly sentence: string;
  readonly found: Preview | null;
  readonly error: Error | null;
}

/** What a rule says, and what it would delete now. */
function Counted({ sentence, found, error }: CountedProps) {
  return (
    <div className={style["preview"]}>
      <p>{sentence}.</p>
      <p role="status">
        {found !== null ? <Found preview={found} /> : error !== null ? `The rows could not be counted: ${error.message}` : "Counting the rows…"}
      </p>
    </div>
  );
}

interface RuleDialogProps {
  readonly organization: string;
  readonly projects: readonly Choice[];
  readonly rules: readonly Rule[];
  /** The rule that is changed; null for a new one. */
  readonly before: Rule | null;
  readonly onClose: () => void;
}

/** The rule that is being entered, with what it would delete. */
function useDraft({ organization, projects, rules, before }: RuleDialogProps) {
  const [project, setProject] = useState(before === null ? (projects[0]?.id ?? "") : (before.project ?? ""));
  const [kind, setKind] = useState(before?.kind ?? "project_logs");
  const [typed, setTyped] = useState(before === null ? "30" : String(before.days));
  const days = daysOf(typed);
  const rested = useRested(days);
  const ruled = rules.flatMap((rule) => (rule.project !== null && rule.kind === kind ? [rule.project] : []));
  const draft = { project: project === "" ? null : project, kind };
  const preview = useQuery(previewQuery(organization, { ...draft, days: rested }, ruled));
  const isCounted = days !== null && days === rested && preview.data !== undefined && !preview.isPlaceholderData && !preview.isFetching;
  return { draft, days, typed, preview, setProject, setKind, setTyped, counted: isCounted ? preview.data : null };
}

type Draft = ReturnType<typeof useDraft>;

/** What a new rule is about. */
function About({ projects, draft, setProject, setKind }: Pick<RuleDialogProps, "projects"> & Pick<Draft, "draft" | "setProject" | "setKind">) {
  return (
    <>
      <Select label="Project" value={draft.project ?? ""} choices={projects} none="All without a rule of their own" onChoose={setProject} />
      <Select
        label="What is deleted"
        value={draft.kind}
        choices={KINDS.map((id) => ({ id, name: KIND_NAMES[id] }))}
        onChoose={(chosen) => setKind(KINDS.find((one) => one === chosen) ?? "project_logs")}
      />
    </>
  );
}

interface SoonDialogProps {
  readonly action: string;
  readonly sentence: string;
  readonly onSave: () => Promise<void>;
  /** Goes back to the rule. */
  readonly onBack: () => void;
  readonly onDone: () => void;
}

/** Asks before a rule that leaves hardly any time to read what was written. */
function SoonDialog({ action, sentence, onSave, onBack, onDone }: SoonDialogProps) {
  const submit = async (): Promise<void> => {
    await onSave();
    onDone();
  };
  return (
    <CheckedDialog title="Keep rows for less than an hour?" action={action} onClose={onBack} onSubmit={submit}>
      <p>{sentence}.</p>
      <p>Rows are deleted soon after they are written, and cannot be restored.</p>
    </CheckedDialog>
  );
}

export function RuleDialog(props: RuleDialogProps) {
  const { organization, projects, before, onClose } = props;
  const entered = useDraft(props);
  const { draft, days, typed, preview, counted, setTyped } = entered;
  const [confirmed, setConfirmed] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const [isAsking, setAsking] = useState(false);
  const number = counted === null || counted.count === 0 ? null : String(counted.count);
  const isReady = (): boolean => {
    const isRight = number === null || confirmed.trim().replaceAll(",", "") === number;
    if (counted !== null && !isRight) setFault(`Type ${number} to confirm that these rows are to go.`);
    if (days === null || counted === null || !isRight) return false;
    setAsking(isShort(days));
    return !isShort(days);
  };
  const save = async (isConfirmed: boolean): Promise<void> => {
    await saveRule(organization, before, { ...draft, days: days ?? 0 }, isConfirmed);
    toast(before === null ? "The rule is there." : "The rule is changed.");
  };
  const name = projects.find(({ id }) => id === draft.project)?.name ?? draft.project;
  const sentence = days === null ? "" : sentenceOf({ kind: draft.kind, days }, name);
  const action = before === null ? "Create" : "Save";
  if (isAsking) return <SoonDialog {...{ action, sentence }} onSave={() => save(true)} onBack={() => setAsking(false)} onDone={onClose} />;
  return (
    <CheckedDialog title={before === null ? "New rule of retention" : "Edit the rule"} {...{ action, onClose, isReady }} onSubmit={() => save(false)}>
      {before === null && <About projects={projects} {...entered} />}
      <Field
        label="Kept for days"
        inputMode="decimal"
        autoComplete="off"
        autoFocus
        value={typed}
        fault={days === null ? "Enter a number of days." : null}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      {days !== null && <Counted sentence={sentence} found={counted} error={preview.error} />}
      {number !== null && (
        <Field
          label={`Type ${number} to confirm`}
          inputMode="numeric"
          autoComplete="off"
          value={confirmed}
          fault={fault}
          onChange={(event) => {
            setConfirmed(event.currentTarget.value);
            setFault(null);
          }}
        />
      )}
    </CheckedDialog>
  );
}
