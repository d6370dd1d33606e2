// The menu of dashboards: choose one, save what is shown, rename and delete.
import { useState } from "react";
import { changeDashboard, deleteDashboard, makeDashboard, type Owner } from "../../../api/monitor";
import { problemOf } from "../../../lib/errors";
import { cache } from "../../../api/queries";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Icon } from "../../../design/Icon";
import { Menu, type MenuItem } from "../../../design/Menu";
import { toast } from "../../../design/Toast";
import { bodyOf, type Dashboard } from "../dashboards";
import { dashboardsKey } from "../queries";
import type { Settings } from "../url";
import type { Changes } from "../useMonitor";
import style from "./Monitor.module.css";
import { NameDialog } from "./NameDialog";

interface DashboardMenuProps {
  readonly owner: Owner;
  readonly dashboards: readonly Dashboard[];
  /** Null for the built-in one. */
  readonly current: Dashboard | null;
  readonly settings: Settings;
  readonly isChanged: boolean;
  readonly changes: Changes;
}

type Opened = "none" | "save" | "rename" | "delete";

export const BUILT_IN_NAME = "Overview";

const fresh = (owner: Owner): Promise<void> => cache.invalidateQueries({ queryKey: dashboardsKey(owner) });

async function save({ owner, settings, changes }: DashboardMenuProps, dashboard: Dashboard): Promise<void> {
  try {
    await changeDashboard(owner, dashboard.id, bodyOf(settings, dashboard));
    await fresh(owner);
    changes.settle();
    toast(`The dashboard ${dashboard.name} is saved.`);
  } catch (error) {
    toast(`The dashboard was not saved. ${problemOf(error, 0).text}`, true);
  }
}

async function remove({ owner, changes }: DashboardMenuProps, dashboard: Dashboard): Promise<void> {
  try {
    await deleteDashboard(owner, dashboard.id);
    changes.open(null);
    await fresh(owner);
    toast(`The dashboard ${dashboard.name} is deleted.`);
  } catch (error) {
    toast(`The dashboard was not deleted. ${problemOf(error, 0).text}`, true);
  }
}

function itemsOf(props: DashboardMenuProps, open: (opened: Opened) => void): readonly MenuItem[] {
  const { dashboards, current, isChanged, changes } = props;
  const entry = (dashboard: Dashboard | null, heading: string | null): MenuItem => ({
    id: `open-${dashboard?.id ?? ""}`,
    title: dashboard?.name ?? BUILT_IN_NAME,
    isChosen: dashboard?.id === current?.id,
    ...(heading === null ? {} : { heading }),
    run: () => changes.open(dashboard?.id ?? null),
  });
  const own: readonly MenuItem[] =
    current === null
      ? []
      : [
          ...(isChanged ? [{ id: "save", title: `Save ${current.name}`, run: () => void save(props, current) }] : []),
          { id: "rename", title: `Rename ${current.name}…`, run: () => open("rename") },
          { id: "delete", title: `Delete ${current.name}…`, run: () => open("delete") },
        ];
  return [
    entry(null, "Built in"),
    ...dashboards.map((dashboard, index) => entry(dashboard, index === 0 ? "Saved" : null)),
    { id: "save-as", heading: "This dashboard", title: "Save as a new dashboard…", run: () => open("save") },
    ...own,
    ...(isChanged
      ? [{ id: "reset", title: "Discard the changes", run: () => changes.open(current?.id ?? null) }]
      : []),
  ];
}

function Dialogs({ opened, onClose, ...props }: DashboardMenuProps & { readonly opened: Opened; readonly onClose: () => void }) {
  const { owner, dashboards, current, settings, changes } = props;
  const taken = dashboards.filter(({ id }) => opened !== "rename" || id !== current?.id).map(({ name }) => name);
  if (opened === "save") {
    return (
      <NameDialog
        title="Save as a new dashboard"
        action="Save"
        start=""
        hint="The dashboard keeps the cards, range, filter and groups. Everybody in the project sees it."
        taken={[...taken, BUILT_IN_NAME]}
        onName={async (name) => {
          const id = await makeDashboard(owner, name, bodyOf(settings, null));
          await fresh(owner);
          changes.open(id);
        }}
        onClose={onClose}
      />
    );
  }
  if (current === null || opened === "none") return null;
  if (opened === "rename") {
    return (
      <NameDialog
        title={`Rename ${current.name}`}
        action="Rename"
        start={current.name}
        hint="Links to the dashboard go on working."
        taken={[...taken, BUILT_IN_NAME]}
        onName={async (name) => {
          await changeDashboard(owner, current.id, { name });
          await fresh(owner);
        }}
        onClose={onClose}
      />
    );
  }
  return (
    <Dialog title={`Delete the dashboard ${current.name}?`} onClose={onClose}>
      <p>Everybody in the project loses it. The traces that it shows stay.</p>
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look="primary"
          onClick={() => {
            onClose();
            void remove(props, current);
          }}
        >
          Delete
        </Button>
      </DialogActions>
    </Dialog>
  );
}

export function DashboardMenu(props: DashboardMenuProps) {
  const { current, isChanged } = props;
  const [opened, setOpened] = useState<Opened>("none");
  const name = current?.name ?? BUILT_IN_NAME;
  return (
    <>
      <Menu
        label={`Dashboard: ${name}`}
        button={
          <>
            <span className="only-spoken">Dashboard: </span>
            <span className={style["name"]}>{name}</span>
            {isChanged && <span className={style["changed"]}>changed</span>}
            <Icon name="down" />
          </>
        }
        items={itemsOf(props, setOpened)}
      />
      <Dialogs {...props} opened={opened} onClose={() => setOpened("none")} />
    </>
  );
}
