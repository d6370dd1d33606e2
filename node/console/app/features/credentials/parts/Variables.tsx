// The section of the settings about environment variables: of the organization, of projects, and of functions.
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
import { Deleting } from "./Deleting";
import { List, Text, When } from "./List";
import { VariableDialog } from "./VariableDialog";
import { functionsQuery, peopleQuery, projectsQuery, variablesQuery } from "../queries";
import { readCredentialsState } from "../url";

/** Names by their ids; undefined while they are read. */
type Names = ReadonlyMap<string, string> | undefined;

function ownerWords({ scope, objectId }: Secret, objects: Names): string {
  if (scope === "organization") return "Organization";
  return objects === undefined ? "" : `${scope === "project" ? "Project" : "Function"} ${objects.get(objectId) ?? objectId}`;
}

const columnsFor = (objects: Names, people: Names): readonly GridColumn<Secret>[] => [
  { id: "name", title: "Name", width: 180, grow: 2, cell: ({ name }) => <code><Text text={name} /></code> },
  { id: "scope", title: "For", width: 170, grow: 1, cell: (one) => <Text text={ownerWords(one, objects)} isFaint={one.scope === "organization"} /> },
  { id: "preview", title: "Value", width: 90, cell: ({ preview }) => <code>{preview ?? "None"}</code> },
  { id: "set", title: "Set", width: 128, cell: ({ set }) => <When at={set} /> },
  { id: "by", title: "By", width: 130, grow: 1, cell: ({ setBy }) => (setBy === null ? "-" : <Text text={people === undefined ? "" : (people.get(setBy) ?? setBy)} />) },
];

type Opened =
  | { readonly what: "none" | "new" }
  | { readonly what: "replace" | "delete"; readonly variable: Secret };

/** The names of projects and functions; functions are read only if a variable belongs to one. */
function useObjects(organization: string, variables: readonly Secret[]) {
  const { data, isLoading } = useQuery(projectsQuery(organization));
  const projects = data?.projects ?? [];
  const hasFunctions = variables.some(({ scope }) => scope === "function");
  const { data: functions, isLoading: areFunctions } = useQuery({ ...functionsQuery(organization), enabled: hasFunctions });
  const isReading = isLoading || areFunctions;
  const names = useMemo(
    () => (isReading ? undefined : new Map([...(data?.projects ?? []), ...(functions ?? [])].map(({ id, name }) => [id, name]))),
    [data, functions, isReading],
  );
  return { projects, names };
}

export function VariablesSection({ place, organization }: SectionProps) {
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const query = useQuery(variablesQuery(organization.name));
  const { data: people, isError } = useQuery(peopleQuery(organization.name));
  const { projects, names } = useObjects(organization.name, query.data ?? []);
  const columns = useMemo(() => columnsFor(names, isError ? new Map() : people), [names, people, isError]);
  const close = (): void => setOpened({ what: "none" });
  const open = useLatest(setOpened);
  const actionsOf = useMemo(
    () =>
      (variable: Secret): readonly MenuItem[] => [
        { id: "replace", title: "Replace the value", run: () => open({ what: "replace", variable }) },
        { id: "delete", title: "Delete", run: () => open({ what: "delete", variable }) },
      ],
    [open],
  );
  const add = (
    <Button icon="plus" onClick={() => setOpened({ what: "new" })}>
      New variable
    </Button>
  );
  return (
    <SectionPage
      title="Environment variables"
      note="Values for the functions of the organization, of a project, or for one function. They are encrypted and never shown."
      actions={query.data?.length === 0 ? undefined : add}
    >
      <List
        label="Environment variables"
        noun="variable"
        state={readCredentialsState(place)}
        query={query}
        columns={columns}
        actionsOf={actionsOf}
        onOpen={(variable) => setOpened({ what: "replace", variable })}
        empty={<Empty action={add}>There is no variable that you can see.</Empty>}
      />
      {(opened.what === "new" || opened.what === "replace") && (
        <VariableDialog
          organization={organization}
          projects={projects}
          all={query.data ?? []}
          before={opened.what === "replace" ? opened.variable : null}
          onClose={close}
        />
      )}
      {opened.what === "delete" && (
        <Deleting organization={organization.name} kind="env_var" one={opened.variable} noun="variable" onClose={close}>
          Whatever uses it does not find it any more. Its value cannot be read back.
        </Deleting>
      )}
    </SectionPage>
  );
}
