// The section of the settings about API keys.
import { FormDialog } from "../../../design/FormDialog";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { makeKey, type Credential } from "../../../api/credentials";
import type { MadeKey } from "../../../api/schema";
import type { SectionProps } from "../../../api/settings";
import { Button } from "../../../design/Button";
import { Chip } from "../../../design/Chip";
import { Empty } from "../../../design/Empty";
import { Field } from "../../../design/Field";
import type { GridColumn } from "../../../design/GridTypes";
import type { MenuItem } from "../../../design/Menu";
import { SectionPage } from "../../../design/SectionPage";
import { useLatest } from "../../../lib/commands";
import { Deleting } from "./Deleting";
import { List, Text, When } from "./List";
import style from "./List.module.css";
import { Made } from "./Made";
import { keysQuery, ownCredentialQuery, readAgain } from "../queries";
import { readCredentialsState } from "../url";

const columnsFor = (own: string | null): readonly GridColumn<Credential>[] => [
  {
    id: "name",
    title: "Name",
    width: 180,
    grow: 2,
    cell: ({ id, name }) => (
      <span className={style["name"]}>
        <Text text={name} />
        {id === own && <Chip>This session</Chip>}
      </span>
    ),
  },
  { id: "preview", title: "Key", width: 120, cell: ({ preview }) => <code>{preview}</code> },
  { id: "owner", title: "Person", width: 160, grow: 1, cell: ({ owner }) => <Text text={owner} /> },
  { id: "created", title: "Created", width: 128, cell: ({ created }) => <When at={created} /> },
];

type Opened = { readonly what: "none" | "new" } | { readonly what: "delete"; readonly key: Credential };

interface NewKeyProps {
  readonly organization: string;
  readonly onMade: (made: MadeKey) => void;
  readonly onClose: () => void;
}

function NewKey({ organization, onMade, onClose }: NewKeyProps) {
  const [name, setName] = useState("");
  const submit = async (): Promise<string | null> => {
    if (name.trim() === "") return "Enter a name first.";
    onMade(await makeKey(organization, name.trim()));
    return null;
  };
  return (
    <FormDialog title="New API key" action="Create" onSubmit={submit} onClose={onClose}>
      <Field
        label="Name"
        name="key-name"
        autoComplete="off"
        autoFocus
        value={name}
        hint="Where the key is used, such as nightly-evals. It can do whatever you can."
        onChange={(event) => setName(event.currentTarget.value)}
      />
    </FormDialog>
  );
}

/** What happens when a key is deleted; `isOwn` is null if nobody knows whether the session was opened with it. */
function consequence(isOwn: boolean | null, isMine: boolean): string {
  if (isOwn === true) return "You are signed in with this key: your session ends at once.";
  if (isOwn === null && isMine) return "Whatever uses it is refused at once. If you signed in with it, your session ends.";
  return "Whatever uses it is refused at once, and sessions that were opened with it end.";
}

export function KeysSection({ place, session, organization }: SectionProps) {
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const [made, setMade] = useState<MadeKey | null>(null);
  const query = useQuery(keysQuery(organization.name));
  const own = useQuery({ ...ownCredentialQuery(organization), enabled: session.by === "key" }).data ?? null;
  const columns = useMemo(() => columnsFor(own), [own]);
  const close = (): void => setOpened({ what: "none" });
  const actionsOf = useLatestActions((key) => setOpened({ what: "delete", key }));
  const add = (
    <Button icon="plus" onClick={() => setOpened({ what: "new" })}>
      New key
    </Button>
  );
  return (
    <SectionPage
      title="API keys"
      note="A key does in this organization what its person may do. Owners see the keys of all members."
      actions={query.data?.length === 0 ? undefined : add}
    >
      <List
        label="API keys"
        noun="key"
        state={readCredentialsState(place)}
        query={query}
        columns={columns}
        actionsOf={actionsOf}
        empty={<Empty action={add}>You have no key in this organization.</Empty>}
      />
      {opened.what === "new" && (
        <NewKey
          organization={organization.name}
          onClose={close}
          onMade={(key) => {
            setMade(key);
            void readAgain(organization.name);
          }}
        />
      )}
      {made !== null && opened.what === "none" && <Made made={made} what="API key" onClose={() => setMade(null)} />}
      {opened.what === "delete" && (
        <Deleting organization={organization.name} kind="api_key" one={opened.key} noun="key" onClose={close}>
          {consequence(
            session.by !== "key" ? false : own === null ? null : opened.key.id === own,
            opened.key.ownerId === session.user.id,
          )}
        </Deleting>
      )}
    </SectionPage>
  );
}

/** The one action of a key, as a list that stays the same. */
function useLatestActions(onDelete: (key: Credential) => void): (key: Credential) => readonly MenuItem[] {
  const open = useLatest(onDelete);
  return useMemo(() => (key) => [{ id: "delete", title: "Delete", run: () => open(key) }], [open]);
}
