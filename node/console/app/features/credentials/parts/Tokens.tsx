// The section of the settings about service tokens and the accounts that they belong to.
import { FormDialog } from "../../../design/FormDialog";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { isServiceAccount, makeAccount, makeToken, type Credential, type Named } from "../../../api/credentials";
import type { MadeKey } from "../../../api/schema";
import type { SectionProps } from "../../../api/settings";
import { Button } from "../../../design/Button";
import { Chip } from "../../../design/Chip";
import { Copy } from "../../../design/Copy";
import { Empty } from "../../../design/Empty";
import { Field } from "../../../design/Field";
import type { GridColumn } from "../../../design/GridTypes";
import type { MenuItem } from "../../../design/Menu";
import { SectionPage } from "../../../design/SectionPage";
import { useLatest } from "../../../lib/commands";
import { Deleting } from "./Deleting";
import { Select } from "./Form";
import { List, Text, When } from "./List";
import style from "./List.module.css";
import { Made } from "./Made";
import { accountsQuery, ownCredentialQuery, readAgain, tokensQuery } from "../queries";
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
  { id: "preview", title: "Token", width: 140, cell: ({ preview }) => <code>{preview}</code> },
  {
    id: "account",
    title: "Service account",
    width: 160,
    grow: 1,
    cell: ({ owner, email }) => <span title={email ?? owner}><Text text={owner} /></span>,
  },
  { id: "created", title: "Created", width: 128, cell: ({ created }) => <When at={created} /> },
];

/** The choice that makes an account with the token. */
const NEW_ACCOUNT = "";

interface NewTokenProps {
  readonly organization: string;
  readonly accounts: readonly Named[];
  readonly onMade: (made: MadeKey) => void;
  readonly onClose: () => void;
}

function NewToken({ organization, accounts, onMade, onClose }: NewTokenProps) {
  const [account, setAccount] = useState(accounts[0]?.id ?? NEW_ACCOUNT);
  const [accountName, setAccountName] = useState("");
  const [name, setName] = useState("");
  const submit = async (): Promise<string | null> => {
    const [wanted, wantedAccount] = [name.trim(), accountName.trim()];
    if (account === NEW_ACCOUNT && wantedAccount === "") return "Enter a name for the account first.";
    if (wanted === "") return "Enter a name for the token first.";
    onMade(
      account === NEW_ACCOUNT
        ? await makeAccount(organization, wantedAccount, wanted)
        : await makeToken(organization, account, wanted),
    );
    return null;
  };
  const choices = [...accounts.map(({ id, name: title }) => ({ value: id, title })), { value: NEW_ACCOUNT, title: "A new account" }];
  return (
    <FormDialog title="New service token" action="Create" onSubmit={submit} onClose={onClose}>
      <Select label="Service account" value={account} choices={choices} onChoose={setAccount} />
      {account === NEW_ACCOUNT && (
        <Field
          label="Name of the account"
          name="account-name"
          autoComplete="off"
          value={accountName}
          hint="The program that it is for. It has no rights until it is granted some."
          onChange={(event) => setAccountName(event.currentTarget.value)}
        />
      )}
      <Field
        label="Name of the token"
        name="token-name"
        autoComplete="off"
        autoFocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
    </FormDialog>
  );
}

/** Says who makes tokens, to those who cannot. */
function HowToMake({ organization }: { readonly organization: string }) {
  const command = `assay admin create-service-account NAME --organization '${organization.replaceAll("'", "'\\''")}' --data-dir DIR`;
  return (
    <>
      Only the service token of an owner makes others: sign in with one. An administrator makes the first on the server
      with
      <span className={style["command"]}>
        <code>{command}</code>
        <Copy text={command} what="the command" />
      </span>
    </>
  );
}

type Opened = { readonly what: "none" | "new" } | { readonly what: "delete"; readonly token: Credential };

export function TokensSection({ place, session, organization }: SectionProps) {
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const [made, setMade] = useState<MadeKey | null>(null);
  const canMake = isServiceAccount(session.user.email);
  const query = useQuery(tokensQuery(organization.name));
  const accounts = useQuery({ ...accountsQuery(organization.name), enabled: canMake }).data;
  const own = useQuery({ ...ownCredentialQuery(organization), enabled: session.by === "key" && canMake }).data ?? null;
  const columns = useMemo(() => columnsFor(own), [own]);
  const close = (): void => setOpened({ what: "none" });
  const openDelete = useLatest((token: Credential) => setOpened({ what: "delete", token }));
  const actionsOf = useMemo(
    () =>
      (token: Credential): readonly MenuItem[] => [{ id: "delete", title: "Delete", run: () => openDelete(token) }],
    [openDelete],
  );
  const add = canMake && accounts !== undefined ? (
    <Button icon="plus" onClick={() => setOpened({ what: "new" })}>
      New token
    </Button>
  ) : undefined;
  return (
    <SectionPage
      title="Service tokens"
      note={canMake ? "A service token is the key of a program, whose account has rights of its own." : <HowToMake organization={organization.name} />}
      actions={query.data?.length === 0 ? undefined : add}
    >
      <List
        label="Service tokens"
        noun="token"
        state={readCredentialsState(place)}
        query={query}
        columns={columns}
        actionsOf={actionsOf}
        empty={<Empty action={add}>There is no service token that you can see.</Empty>}
      />
      {opened.what === "new" && accounts !== undefined && (
        <NewToken
          organization={organization.name}
          accounts={accounts}
          onClose={close}
          onMade={(token) => {
            setMade(token);
            void readAgain(organization.name);
          }}
        />
      )}
      {made !== null && opened.what === "none" && <Made made={made} what="service token" onClose={() => setMade(null)} />}
      {opened.what === "delete" && (
        <Deleting organization={organization.name} kind="service_token" one={opened.token} noun="token" onClose={close}>
          {opened.token.id === own
            ? "You are signed in with this token: your session ends at once."
            : `Programs that use it as ${opened.token.owner} are refused at once.`}
        </Deleting>
      )}
    </SectionPage>
  );
}
