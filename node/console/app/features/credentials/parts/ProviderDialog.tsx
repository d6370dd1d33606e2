// The dialog that makes or changes the secret of a provider. The secret itself is only written.
import { FormDialog } from "../../../design/FormDialog";
import { useState } from "react";
import type { Organization, Project } from "../../../api/schema";
import { changeSecret, makeSecret, type Secret } from "../../../api/secrets";
import { Field } from "../../../design/Field";
import { Icon } from "../../../design/Icon";
import { toast } from "../../../design/Toast";
import { formOf, metadataOf, type Fields, type ProviderForm } from "../form";
import { isLongSecret, leadsElsewhere, OFFERED, providerOf, secretHint, serverType, type ProviderField } from "../providers";
import { readAgain } from "../queries";
import { CustomModels } from "./CustomModels";
import { Area, Pair, Select } from "./Form";
import style from "./Form.module.css";

interface ProviderDialogProps {
  readonly organization: Organization;
  readonly projects: readonly Project[];
  /** All secrets, whose names are taken. */
  readonly all: readonly Secret[];
  /** The secret to change; null for a new one. */
  readonly before: Secret | null;
  readonly onClose: () => void;
}

/** What is entered. */
interface Draft {
  /** The id of the project, or an empty text for the organization. */
  readonly project: string;
  readonly type: string;
  readonly name: string;
  readonly value: string;
  readonly form: ProviderForm;
}

function startOf(before: Secret | null): Draft {
  const type = before?.type ?? "openai";
  return {
    project: before?.scope === "project" ? before.objectId : "",
    type,
    name: before?.name ?? providerOf(type).name,
    value: "",
    form: formOf(type, before?.metadata ?? {}),
  };
}

interface MetadataFieldProps {
  readonly field: ProviderField;
  readonly value: string;
  readonly onText: (text: string) => void;
}

function MetadataField({ field: { key, title, hint, choices }, value, onText }: MetadataFieldProps) {
  if (choices !== undefined) {
    const [first] = choices;
    const known = choices.some(([choice]) => choice === value) || value === "" ? [] : [{ value, title: value }];
    const all = [...choices.map(([choice, words]) => ({ value: choice, title: words })), ...known];
    return <Select label={title} value={value === "" ? (first?.[0] ?? "") : value} choices={all} onChoose={onText} />;
  }
  return (
    <Field
      label={title}
      name={key}
      autoComplete="off"
      spellCheck={false}
      inputMode={key === "api_base" ? "url" : "text"}
      value={value}
      hint={hint}
      onChange={(event) => onText(event.currentTarget.value)}
    />
  );
}

interface SecretFieldProps {
  readonly draft: Draft;
  readonly before: Secret | null;
  readonly isElsewhere: boolean;
  readonly onText: (text: string) => void;
}

/** The field of the secret, and what happens to the one that is kept. */
function SecretField({ draft: { type, form, value }, before, isElsewhere, onText }: SecretFieldProps) {
  const auth = form.texts["auth_type"] ?? form.texts["authType"] ?? "";
  const label = before === null ? "Secret" : "New secret";
  const kept = before?.preview ?? null;
  const hint = kept === null ? secretHint(type, auth) : `Empty keeps the secret ${kept}. ${secretHint(type, auth)}`;
  return (
    <>
      {isLongSecret(auth) ? (
        <Area label={label} hint={hint} rows={4} value={value} onText={onText} />
      ) : (
        <Field
          label={label}
          type="password"
          name="provider-secret"
          autoComplete="new-password"
          value={value}
          hint={hint}
          onChange={(event) => onText(event.currentTarget.value)}
        />
      )}
      {isElsewhere && kept !== null && value === "" && (
        <p className={style["warning"]} role="status">
          <Icon name="warning" />
          The secret would be sent to another address now. The server drops the one it has: enter it again.
        </p>
      )}
    </>
  );
}

interface MoreProps {
  readonly type: string;
  readonly form: ProviderForm;
  readonly change: (changed: Partial<ProviderForm>) => void;
}

/** The fields of the provider that everybody sees, or those that few people need. */
function MetadataFields({ type, form, change, isRare }: MoreProps & { readonly isRare: boolean }) {
  return (
    <Pair>
      {providerOf(type)
        .fields.filter((field) => (field.isRare ?? false) === isRare)
        .map((field) => (
          <MetadataField
            key={field.key}
            field={field}
            value={form.texts[field.key] ?? ""}
            onText={(text) => change({ texts: { ...form.texts, [field.key]: text } })}
          />
        ))}
    </Pair>
  );
}

function Models({ form, change }: MoreProps) {
  return (
    <>
      <Area
        label="Models"
        hint="The only models that may be called, one in a line. Empty allows all that the provider has."
        rows={3}
        value={form.models}
        onText={(models) => change({ models })}
      />
      <CustomModels models={form.custom} onChange={(custom) => change({ custom })} />
    </>
  );
}

function More(props: MoreProps) {
  const { type, form, change } = props;
  const isUsed = providerOf(type).fields.some(({ key, isRare }) => isRare === true && form.texts[key] !== undefined);
  const [isOpen] = useState(form.headers !== "" || form.other !== "" || isUsed);
  return (
    <details className={style["more"]} open={isOpen}>
      <summary>Headers and other metadata</summary>
      <div>
        <MetadataFields {...props} isRare />
        <Area
          label="Headers"
          hint="Sent with every call, one in a line, as name: value."
          rows={2}
          value={form.headers}
          onText={(headers) => change({ headers })}
        />
        <Area
          label="Other metadata"
          hint="A JSON object with members such as weight, priority, timeout_ms, excludeDefaultModels, supportsStreaming, overrideModel and tls. It is stored in clear text."
          rows={4}
          value={form.other}
          onText={(other) => change({ other })}
        />
      </div>
    </details>
  );
}

/** Whether another secret of the same owner has the name already. */
const isTaken = (all: readonly Secret[], before: Secret | null, { name, project }: Draft): boolean =>
  all.some((one) => one.id !== before?.id && one.name === name.trim() && (one.scope === "project" ? one.objectId : "") === project);

async function saved({ organization, all, before }: ProviderDialogProps, draft: Draft, metadata: Fields): Promise<string | null> {
  const name = draft.name.trim();
  if (name === "") return "Enter a name first.";
  if (isTaken(all, before, draft)) return `There is a secret named ${name} already.`;
  const isProjects = draft.project !== "";
  const sent = {
    kind: before?.kind ?? (isProjects ? ("env_var" as const) : ("ai_secret" as const)),
    scope: isProjects ? ("project" as const) : ("organization" as const),
    objectId: isProjects ? draft.project : organization.id,
    name,
    type: serverType(draft.type),
    metadata,
    value: draft.value === "" ? null : draft.value,
  };
  if (before === null) await makeSecret(organization.name, sent);
  else {
    const hasValue = await changeSecret(organization.name, before.id, sent);
    if (!hasValue && before.preview !== null) toast(`The server dropped the secret of ${name}. Enter it again.`, true);
  }
  await readAgain(organization.name);
  return null;
}

function Identity({ draft, before, projects, set }: Pick<ProviderDialogProps, "before" | "projects"> & { readonly draft: Draft; readonly set: (changed: Partial<Draft>) => void }) {
  const choose = (type: string): void => {
    const isUsual = draft.name === "" || draft.name === providerOf(draft.type).name;
    set({ type, ...(isUsual ? { name: providerOf(type).name } : {}) });
  };
  const types = before === null ? OFFERED : [providerOf(draft.type)];
  const owners = [{ value: "", title: "The organization" }, ...projects.map(({ id, name }) => ({ value: id, title: `Project ${name}` }))];
  return (
    <>
      <Pair>
        <Select
          label="Provider"
          value={draft.type}
          isDisabled={before !== null}
          choices={types.map(({ type, title }) => ({ value: type, title }))}
          onChoose={choose}
        />
        <Select label="For" value={draft.project} isDisabled={before !== null} choices={owners} onChoose={(project) => set({ project })} />
      </Pair>
      <Field
        label="Name"
        name="secret-name"
        autoComplete="off"
        spellCheck={false}
        value={draft.name}
        hint="Callers can ask for it by this name. A project's secret goes before the organization's of the same provider."
        onChange={(event) => set({ name: event.currentTarget.value })}
      />
    </>
  );
}

export function ProviderDialog(props: ProviderDialogProps) {
  const { before, projects, onClose } = props;
  const [draft, setDraft] = useState(() => startOf(before));
  const set = (changed: Partial<Draft>): void => setDraft({ ...draft, ...changed });
  const change = (changed: Partial<ProviderForm>): void => set({ form: { ...draft.form, ...changed } });
  const read = metadataOf(draft.type, draft.form);
  const isElsewhere = before !== null && "metadata" in read && leadsElsewhere(before.metadata, read.metadata);
  const shown = { type: draft.type, form: draft.form, change };
  const submit = async (): Promise<string | null> => ("fault" in read ? read.fault : saved(props, draft, read.metadata));
  return (
    <FormDialog
      title={before === null ? "New AI secret" : "Edit this AI secret"}
      action={before === null ? "Create" : "Save"}
      form="wide"
      onSubmit={submit}
      onClose={onClose}
    >
      <Identity {...{ draft, before, projects, set }} />
      <MetadataFields {...shown} isRare={false} />
      <SecretField {...{ draft, before, isElsewhere }} onText={(value) => set({ value })} />
      <Models {...shown} />
      <More {...shown} />
    </FormDialog>
  );
}
