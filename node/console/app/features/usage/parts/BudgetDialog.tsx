// The dialog that makes or changes a budget. What a budget is about stays as it was made.
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import type { Organization } from "../../../api/schema";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import {
  draftOf,
  faultsOf,
  LIMIT_NAMES,
  LIMITS,
  SCOPE_NAMES,
  SCOPES,
  WINDOW_NAMES,
  WINDOWS,
  type Budget,
  type BudgetDraft,
  type DraftFaults,
} from "../budget";
import { choicesQuery, saveBudget } from "../budgetQueries";
import style from "../section.module.css";
import { CheckedDialog, Select } from "./Forms";

interface PartProps {
  readonly draft: BudgetDraft;
  readonly faults: DraftFaults;
  readonly onChange: (changed: Partial<BudgetDraft>) => void;
}

function ScopeFields({ draft, faults, onChange, organization }: PartProps & { readonly organization: string }) {
  const listId = useId();
  const choices = useQuery(choicesQuery(organization, draft.type)).data ?? [];
  return (
    <>
      <Select
        label="For"
        value={draft.type}
        choices={SCOPES.map((id) => ({ id, name: SCOPE_NAMES[id] }))}
        onChoose={(chosen) => onChange({ type: SCOPES.find((type) => type === chosen) ?? "org", id: "" })}
      />
      {draft.type === "model" && (
        <>
          <Field
            label="Name of the model"
            list={listId}
            autoComplete="off"
            value={draft.id}
            fault={faults.id ?? null}
            onChange={(event) => onChange({ id: event.currentTarget.value })}
          />
          <datalist id={listId}>
            {choices.map(({ id }) => <option key={id} value={id} />)}
          </datalist>
        </>
      )}
      {draft.type !== "model" && draft.type !== "org" && (
        <Select label="Which one" none="Choose" value={draft.id} choices={choices} onChoose={(id) => onChange({ id })} fault={faults.id ?? null} />
      )}
    </>
  );
}

function LimitFields({ draft, faults, onChange }: PartProps) {
  return (
    <>
      <Select
        label="Counted"
        value={draft.window}
        choices={WINDOWS.map((id) => ({ id, name: WINDOW_NAMES[id] }))}
        onChoose={(chosen) => onChange({ window: WINDOWS.find((one) => one === chosen) ?? "month" })}
      />
      <div className={style["pair"]}>
        {LIMITS.map((limit) => (
          <Field
            key={limit}
            label={LIMIT_NAMES[limit]}
            inputMode={limit === "usd" ? "decimal" : "numeric"}
            placeholder="No limit"
            autoComplete="off"
            value={draft.limits[limit]}
            fault={faults[limit] ?? null}
            onChange={(event) => onChange({ limits: { ...draft.limits, [limit]: event.currentTarget.value } })}
          />
        ))}
      </div>
      <Select
        label="Beyond a limit"
        value={draft.isStrict ? "reject" : "alert"}
        choices={[{ id: "reject", name: "Refuse calls" }, { id: "alert", name: "Only report" }]}
        onChoose={(action) => onChange({ isStrict: action === "reject" })}
      />
      {draft.limits.usd.trim() !== "" && (
        <label className={style["check"]}>
          <input type="checkbox" checked={draft.allowUnpriced} onChange={(event) => onChange({ allowUnpriced: event.currentTarget.checked })} />
          Allow models without a price
        </label>
      )}
    </>
  );
}

interface BudgetDialogProps {
  readonly organization: Organization;
  /** The budget that is changed; null for a new one. */
  readonly before: Budget | null;
  readonly words: string;
  readonly onClose: () => void;
}

export function BudgetDialog({ organization, before, words, onClose }: BudgetDialogProps) {
  const [draft, setDraft] = useState(() => draftOf(before));
  const [faults, setFaults] = useState<DraftFaults>({});
  const part: PartProps = {
    draft,
    faults,
    onChange: (changed) => {
      setDraft({ ...draft, ...changed });
      setFaults({});
    },
  };
  return (
    <CheckedDialog
      title={before === null ? "New budget" : "Edit the budget"}
      action={before === null ? "Create" : "Save"}
      onClose={onClose}
      isReady={() => {
        const found = faultsOf(draft);
        setFaults(found);
        return Object.keys(found).length === 0;
      }}
      onSubmit={async () => {
        await saveBudget(organization, before, draft);
        toast(before === null ? "The budget is there." : "The budget is changed.");
      }}
    >
      {before === null ? <ScopeFields {...part} organization={organization.name} /> : <p>{words}</p>}
      <LimitFields {...part} />
    </CheckedDialog>
  );
}
