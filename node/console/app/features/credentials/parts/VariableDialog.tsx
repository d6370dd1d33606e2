// The dialog that makes an environment variable, or replaces the value of one. Values are only written.
import { FormDialog } from "../../../design/FormDialog";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Organization, Project } from "../../../api/schema";
import { changeSecret, makeSecret, type ScopeType, type Secret } from "../../../api/secrets";
import { Field } from "../../../design/Field";
import { functionsQuery, readAgain } from "../queries";
import { Area, Name, Select, type Choice } from "./Form";

interface VariableDialogProps {
  readonly organization: Organization;
  readonly projects: readonly Project[];
  /** All variables, whose names are taken. */
  readonly all: readonly Secret[];
  /** The variable whose value is replaced; null for a new one. */
  readonly before: Secret | null;
  readonly onClose: () => void;
}

interface Draft {
  readonly scope: ScopeType;
  readonly objectId: string;
  readonly name: string;
  readonly value: string;
}

const SCOPES: readonly (Choice & { readonly value: ScopeType })[] = [
  { value: "organization", title: "The organization" },
  { value: "project", title: "A project" },
  { value: "function", title: "A function" },
];

const ENVIRONMENT_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

async function saved({ organization, all, before }: VariableDialogProps, draft: Draft): Promise<string | null> {
  const { scope, objectId, value } = draft;
  const name = draft.name.trim();
  if (objectId === "") return `Choose a ${scope} first.`;
  if (!ENVIRONMENT_NAME.test(name) && before === null) return "A name has letters, digits and underscores, and no digit at its beginning.";
  if (value === "") return "Enter a value first.";
  const isTaken = all.some((one) => one.id !== before?.id && one.name === name && one.scope === scope && one.objectId === objectId);
  if (isTaken) return `There is a variable ${name} already: replace its value.`;
  const sent = { kind: "env_var" as const, scope, objectId, name, type: null, metadata: null, value };
  if (before === null) await makeSecret(organization.name, sent);
  else await changeSecret(organization.name, before.id, sent);
  await readAgain(organization.name);
  return null;
}

interface OwnerProps extends Pick<VariableDialogProps, "organization" | "projects"> {
  readonly draft: Draft;
  readonly set: (changed: Partial<Draft>) => void;
}

/** The object that a new variable is for. */
function Owner({ organization, projects, draft, set }: OwnerProps) {
  const functions = useQuery({ ...functionsQuery(organization.name), enabled: draft.scope === "function" }).data ?? [];
  const names = new Map(projects.map(({ id, name }) => [id, name]));
  const choices: readonly Choice[] =
    draft.scope === "project"
      ? projects.map(({ id, name }) => ({ value: id, title: name }))
      : functions.map(({ id, name, projectId }) => ({ value: id, title: projects.length === 0 ? name : `${name} (${names.get(projectId) ?? projectId})` }));
  const choose = (value: string): void => {
    const scope = SCOPES.find((one) => one.value === value)?.value ?? "organization";
    set({ scope, objectId: scope === "organization" ? organization.id : "" });
  };
  return (
    <>
      <Select label="For" value={draft.scope} choices={SCOPES} onChoose={choose} />
      {draft.scope !== "organization" && (
        <Select
          label={draft.scope === "project" ? "Project" : "Function"}
          value={draft.objectId}
          choices={[{ value: "", title: "Choose one" }, ...choices]}
          onChoose={(objectId) => set({ objectId })}
        />
      )}
    </>
  );
}

export function VariableDialog(props: VariableDialogProps) {
  const { organization, before, onClose } = props;
  const [draft, setDraft] = useState<Draft>({
    scope: before?.scope ?? "organization",
    objectId: before?.objectId ?? organization.id,
    name: before?.name ?? "",
    value: "",
  });
  const set = (changed: Partial<Draft>): void => setDraft({ ...draft, ...changed });
  return (
    <FormDialog
      title={before === null ? "New environment variable" : "Replace the value"}
      action={before === null ? "Create" : "Replace"}
      onSubmit={() => saved(props, draft)}
      onClose={onClose}
    >
      {before !== null && <Name name={before.name} />}
      {before === null && (
        <>
          <Owner {...props} draft={draft} set={set} />
          <Field
            label="Name"
            name="variable-name"
            autoComplete="off"
            spellCheck={false}
            value={draft.name}
            onChange={(event) => set({ name: event.currentTarget.value })}
          />
        </>
      )}
      <Area
        label="Value"
        hint="It is encrypted, and never shown again."
        rows={3}
        value={draft.value}
        onText={(value) => set({ value })}
      />
    </FormDialog>
  );
}
