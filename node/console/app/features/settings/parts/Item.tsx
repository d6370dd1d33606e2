// What groups and roles have in common: the list of them, and the head of one with its name and its end.
import { useMemo, useState, type ReactNode } from "react";
import { describe, faultOf, make, remove } from "../../../api/people";
import { Button } from "../../../design/Button";
import { Chip } from "../../../design/Chip";
import { Confirm } from "../../../design/Confirm";
import { Empty } from "../../../design/Empty";
import { createGridState, gridCommands, type GridColumn } from "../../../design/GridTypes";
import { SectionGrid } from "../../../design/SectionGrid";
import { SectionPage } from "../../../design/SectionPage";
import { toast } from "../../../design/Toast";
import { useCommands } from "../../../lib/commands";
import type { Reading } from "../../../lib/problem";
import { navigate } from "../../../lib/router";
import { named } from "../people";
import style from "../settings.module.css";
import { writePeople, type PeopleState } from "../url";
import { NameDialog } from "./NameDialog";
import { FILTER_ID, NameFilter, Read } from "./Shared";

export interface Item {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly isBuiltIn: boolean;
}

type What = "group" | "role";

const SECTIONS = { group: "groups", role: "roles" } as const;
const TITLES = { group: "Groups", role: "Roles" } as const;
const NAMES = { group: "Group", role: "Role" } as const;

interface ItemListProps<One extends Item> {
  readonly what: What;
  readonly note: string;
  readonly organization: string;
  readonly reading: Reading<readonly One[]>;
  readonly columns: readonly GridColumn<One>[];
  readonly state: PeopleState;
}

const itemId = (item: Item): string => item.id;

export const nameColumn: GridColumn<Item> = {
  id: "name",
  title: "Name",
  width: 160,
  grow: 2,
  cell: ({ name, isBuiltIn }) => (
    <span className={style["name"]} title={name}>
      <span>{name}</span>
      {isBuiltIn && <Chip>built in</Chip>}
    </span>
  ),
};

export const descriptionColumn: GridColumn<Item> = {
  id: "description",
  title: "Description",
  width: 180,
  grow: 3,
  cell: ({ description }) => (
    <span className={style["soft"]} title={description}>
      {description}
    </span>
  ),
};

interface ItemGridProps<One extends Item> extends ItemListProps<One> {
  readonly all: readonly One[];
}

/** The grid of all, with the keys that move in it. */
function ItemGrid<One extends Item>({ what, organization, all, columns, state }: ItemGridProps<One>) {
  const grid = useMemo(() => createGridState(), []);
  const group = TITLES[what];
  const commands = useMemo(
    () => [
      ...gridCommands(grid, group, what).filter(({ keys }) => keys !== "x"),
      { id: `${what}.filter`, title: `Filter the ${what}s`, group, keys: "/", run: () => document.getElementById(FILTER_ID)?.focus() },
    ],
    [grid, group, what],
  );
  useCommands(commands);
  const go = (next: PeopleState, how: "push" | "replace"): void => navigate(writePeople(organization, SECTIONS[what], next), how);
  const shown = named(all, state.filter, ({ description }) => description);
  return (
    <>
      <NameFilter what={`${what}s`} value={state.filter} onValue={(filter) => go({ ...state, filter }, "replace")} />
      {shown.length === 0 ? (
        <Empty action={all.length > 0 && <Button onClick={() => go({ ...state, filter: "" }, "replace")}>Show all {all.length}</Button>}>
          {all.length === 0 ? `You see no ${what} of this organization.` : `No ${what} has “${state.filter}” in its name.`}
        </Empty>
      ) : (
        <SectionGrid
          label={group}
          state={grid}
          rows={shown}
          rowId={itemId}
          columns={columns}
          total={shown.length}
          onOpen={(one) => go({ ...state, open: one.id }, "push")}
        />
      )}
    </>
  );
}

export function ItemList<One extends Item>(props: ItemListProps<One>) {
  const { what, note, organization, reading } = props;
  const [isMaking, setMaking] = useState(false);
  return (
    <SectionPage
      title={TITLES[what]}
      note={note}
      actions={
        <Button icon="plus" onClick={() => setMaking(true)}>
          New {what}
        </Button>
      }
    >
      <Read reading={reading}>{(all) => <ItemGrid {...props} all={all} />}</Read>
      {isMaking && (
        <NameDialog
          title={`New ${what}`}
          action="Create"
          taken={(reading.data ?? []).map(({ name }) => name)}
          onClose={() => setMaking(false)}
          onSave={async (name, description) => {
            const id = await make(what, organization, name, description);
            setMaking(false);
            navigate(writePeople(organization, SECTIONS[what], { open: id, filter: "" }), "push");
          }}
        />
      )}
    </SectionPage>
  );
}

interface ReadItemProps<One extends Item> {
  readonly what: What;
  readonly organization: string;
  readonly id: string;
  readonly reading: Reading<readonly One[]>;
  readonly children: (open: One, all: readonly One[]) => ReactNode;
}

const MARKS = [22, 6, 6, 6, 6, 10, 10, 10, 10];
const ITEM = [[20], [60], [], MARKS, MARKS, MARKS, MARKS];

/** Reads the one that is open. Until it is there, its page has the way back. */
export function ReadItem<One extends Item>({ what, organization, id, reading, children }: ReadItemProps<One>) {
  const read = (
    <Read reading={reading} bars={ITEM}>
      {(all) => {
        const open = all.find((one) => one.id === id);
        return open === undefined ? <NoItem what={what} organization={organization} /> : children(open, all);
      }}
    </Read>
  );
  if (reading.data !== undefined) return read;
  const isFailed = reading.problem !== null && !reading.isReading;
  return (
    <>
      <WayBack what={what} organization={organization} />
      {isFailed ? <SectionPage title={NAMES[what]}>{read}</SectionPage> : read}
    </>
  );
}

const listOf = (what: What, organization: string): string => writePeople(organization, SECTIONS[what], { open: "", filter: "" });

function WayBack({ what, organization }: { readonly what: What; readonly organization: string }) {
  return (
    <p>
      <a href={listOf(what, organization)}>All {what}s</a>
    </p>
  );
}

interface ItemPageProps {
  readonly what: What;
  readonly organization: string;
  readonly item: Item;
  readonly all: readonly Item[];
  readonly mayUpdate: boolean;
  readonly mayDelete: boolean;
  readonly children: ReactNode;
}

export function ItemPage({ what, organization, item, all, mayUpdate, mayDelete, children }: ItemPageProps) {
  const [asked, setAsked] = useState<"none" | "name" | "delete">("none");
  const close = (): void => setAsked("none");
  return (
    <>
      <WayBack what={what} organization={organization} />
      <SectionPage
        title={item.name}
        note={item.description}
        actions={
          <>
            {mayUpdate && <Button onClick={() => setAsked("name")}>Rename</Button>}
            {mayDelete && <Button onClick={() => setAsked("delete")}>Delete</Button>}
          </>
        }
      >
        {children}
      </SectionPage>
      {asked === "name" && (
        <NameDialog
          title={`Name of the ${what}`}
          action="Save"
          name={item.name}
          description={item.description}
          taken={all.filter(({ id }) => id !== item.id).map(({ name }) => name)}
          onClose={close}
          onSave={async (name, description) => {
            await describe(what, organization, item.id, name, description);
            close();
          }}
        />
      )}
      {asked === "delete" && (
        <Confirm
          title={`Delete the ${what} ${item.name}?`}
          action="Delete"
          onClose={close}
          onConfirm={async () => {
            const fault = await faultOf(remove(what, organization, item.id));
            if (fault !== null) return fault;
            toast(`The ${what} ${item.name} is deleted.`);
            navigate(listOf(what, organization), "replace");
            return null;
          }}
        >
          Everything that was granted through this {what} ends at once.
        </Confirm>
      )}
    </>
  );
}

/** What stands where a group or role is gone, or was never to be seen. */
function NoItem({ what, organization }: { readonly what: What; readonly organization: string }) {
  return (
    <Empty action={<Button onClick={() => navigate(listOf(what, organization), "replace")}>All {what}s</Button>}>
      This organization has no such {what} that you may see.
    </Empty>
  );
}
