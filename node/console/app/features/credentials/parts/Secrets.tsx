// The section of the settings about AI secrets: the providers of models, for the organization and for its projects.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { SectionProps } from "../../../api/settings";
import type { Secret } from "../../../api/secrets";
import { Button } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import type { GridColumn } from "../../../design/GridTypes";
import type { MenuItem } from "../../../design/Menu";
import { SectionPage } from "../../../design/SectionPage";
import { useLatest } from "../../../lib/commands";
import { namedModels } from "../form";
import { Deleting } from "./Deleting";
import { List, Text, When } from "./List";
import style from "./List.module.css";
import { ProviderDialog } from "./ProviderDialog";
import { TestDialog } from "./TestDialog";
import { addressOf, isCallable, providerOf } from "../providers";
import { projectsQuery, providersQuery } from "../queries";
import { readCredentialsState } from "../url";

/** The columns; `projects` has names by their ids, undefined while they are read. */
const columnsFor = (projects: ReadonlyMap<string, string> | undefined): readonly GridColumn<Secret>[] => [
  { id: "name", title: "Name", width: 170, grow: 2, cell: ({ name }) => <Text text={name} /> },
  { id: "type", title: "Provider", width: 130, cell: ({ type }) => <Text text={providerOf(type ?? "").title} /> },
  {
    id: "scope",
    title: "For",
    width: 110,
    grow: 1,
    cell: ({ scope, objectId }) =>
      scope === "organization" ? <Text isFaint text="Organization" /> : <Text text={projects === undefined ? "" : (projects.get(objectId) ?? objectId)} />,
  },
  { id: "base", title: "Base URL", width: 170, grow: 2, cell: ({ type, metadata }) => <Text text={addressOf(type ?? "", metadata) || "-"} /> },
  {
    id: "models",
    title: "Models",
    width: 120,
    grow: 1,
    cell: ({ metadata }) => <Text text={namedModels(metadata).join(", ") || "All"} isFaint={namedModels(metadata).length === 0} />,
  },
  {
    id: "preview",
    title: "Secret",
    width: 90,
    cell: ({ preview, type }) =>
      preview === null ? <span className={type === "ollama" ? style["faint"] : style["none"]}>None</span> : <code>{preview}</code>,
  },
  { id: "set", title: "Set", width: 110, cell: ({ set }) => <When at={set} /> },
];

type Opened =
  | { readonly what: "none" }
  | { readonly what: "edit"; readonly secret: Secret | null }
  | { readonly what: "test" | "delete"; readonly secret: Secret };

function useActions(open: (opened: Opened) => void): (secret: Secret) => readonly MenuItem[] {
  const latest = useLatest(open);
  return useMemo(
    () => (secret) => [
      ...(isCallable(secret.type ?? "") ? [{ id: "test", title: "Test call", run: () => latest({ what: "test", secret }) }] : []),
      { id: "edit", title: "Edit", run: () => latest({ what: "edit", secret }) },
      { id: "delete", title: "Delete", run: () => latest({ what: "delete", secret }) },
    ],
    [latest],
  );
}

export function SecretsSection({ place, organization }: SectionProps) {
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const query = useQuery(providersQuery(organization.name));
  const { data, isLoading } = useQuery(projectsQuery(organization.name));
  const projects = data?.projects ?? [];
  const names = useMemo(() => (isLoading ? undefined : new Map(data?.projects.map(({ id, name }) => [id, name]))), [data, isLoading]);
  const columns = useMemo(() => columnsFor(names), [names]);
  const actionsOf = useActions(setOpened);
  const close = (): void => setOpened({ what: "none" });
  const add = (
    <Button icon="plus" onClick={() => setOpened({ what: "edit", secret: null })}>
      New secret
    </Button>
  );
  return (
    <SectionPage
      title="AI secrets"
      note="Keys of model providers. The gateway, prompts, scorers and playgrounds call models with them. They are encrypted and never shown."
      actions={query.data?.length === 0 ? undefined : add}
    >
      <List
        label="AI secrets"
        noun="secret"
        state={readCredentialsState(place)}
        query={query}
        columns={columns}
        actionsOf={actionsOf}
        onOpen={(secret) => setOpened({ what: "edit", secret })}
        empty={<Empty action={add}>No model can be called yet: there is no secret of a provider.</Empty>}
      />
      {opened.what === "edit" && (
        <ProviderDialog organization={organization} projects={projects} all={query.data ?? []} before={opened.secret} onClose={close} />
      )}
      {opened.what === "test" && <TestDialog organization={organization.name} secret={opened.secret} onClose={close} />}
      {opened.what === "delete" && (
        <Deleting organization={organization.name} kind={opened.secret.kind} one={opened.secret} noun="secret" onClose={close}>
          Calls of its models fail from now on, unless another secret serves them. The secret cannot be read back.
        </Deleting>
      )}
    </SectionPage>
  );
}
