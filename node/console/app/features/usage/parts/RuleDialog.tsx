// The dialog that makes or changes a rule of retention: it counts what would be deleted, and has that number typed.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import { exactCount } from "../../../lib/numbers";
import { preferences } from "../../../lib/preferences";
import { clock, day, fullMoment, parseMoment } from "../../../lib/time";
import { previewQuery, saveRule, type Preview } from "../retentionQueries";
import { daysOf, KIND_NAMES, KINDS, sentenceOf, type Rule } from "../rules";
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

export function RuleDialog(props: RuleDialogProps) {
  const { organization, projects, before, onClose } = props;
  const { draft, days, typed, preview, counted, setProject, setKind, setTyped } = useDraft(props);
  const [confirmed, setConfirmed] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const number = counted === null || counted.count === 0 ? null : String(counted.count);
  const isReady = (): boolean => {
    const isRight = number === null || confirmed.trim().replaceAll(",", "") === number;
    if (counted !== null && !isRight) setFault(`Type ${number} to confirm that these rows are to go.`);
    return days !== null && counted !== null && isRight;
  };
  const name = projects.find(({ id }) => id === draft.project)?.name ?? draft.project;
  return (
    <CheckedDialog
      title={before === null ? "New rule of retention" : "Edit the rule"}
      action={before === null ? "Create" : "Save"}
      onClose={onClose}
      isReady={isReady}
      onSubmit={async () => {
        await saveRule(organization, before, { ...draft, days: days ?? 0 });
        toast(before === null ? "The rule is there." : "The rule is changed.");
      }}
    >
      {before === null && (
        <>
          <Select label="Project" value={draft.project ?? ""} choices={projects} none="All without a rule of their own" onChoose={setProject} />
          <Select
            label="What is deleted"
            value={draft.kind}
            choices={KINDS.map((id) => ({ id, name: KIND_NAMES[id] }))}
            onChoose={(chosen) => setKind(KINDS.find((one) => one === chosen) ?? "project_logs")}
          />
        </>
      )}
      <Field
        label="Kept for days"
        inputMode="decimal"
        autoComplete="off"
        autoFocus
        value={typed}
        fault={days === null ? "Enter a number of days." : null}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      {days !== null && <Counted sentence={sentenceOf({ kind: draft.kind, days }, name)} found={counted} error={preview.error} />}
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
