// The menu of views: chooses one, saves, renames and deletes.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { problemOf } from "../../../lib/errors";
import { Icon } from "../../../design/Icon";
import { Menu, type MenuItem } from "../../../design/Menu";
import { toast } from "../../../design/Toast";
import { isHeldBack } from "../../../lib/first";
import { viewsQuery } from "../queries";
import type { LogsState } from "../url";
import { builtInViews, isChanged, viewedState, type View } from "../views";
import style from "./Bar.module.css";
import { ViewDialogs } from "./later";
import type { ViewDialog } from "./ViewDialogs";

interface ViewMenuProps {
  readonly state: LogsState;
  readonly projectId: string;
  readonly userId: string;
  readonly change: (changed: Partial<LogsState>) => void;
}

function useViews({ state, projectId, userId }: ViewMenuProps) {
  const isWanted = !isHeldBack.value || !builtInViews(userId).some((view) => view.id === state.view);
  const saved = useQuery({ ...viewsQuery(state.organization, projectId), enabled: isWanted }).data;
  return useMemo(() => {
    const all = [...builtInViews(userId), ...(saved ?? [])];
    return { all, current: all.find((view) => view.id === state.view) };
  }, [saved, userId, state.view]);
}

async function save({ state, projectId }: ViewMenuProps, view: View): Promise<void> {
  try {
    const { saveView } = await import("../laterQueries");
    await saveView(state.organization, projectId, view.id, viewedState(state));
    toast(`The view ${view.name} is saved.`);
  } catch (error) {
    toast(`The view was not saved. ${problemOf(error, 0).text}`, true);
  }
}

function itemsOf(
  props: ViewMenuProps,
  views: readonly View[],
  current: View | undefined,
  open: (opened: ViewDialog) => void,
): readonly MenuItem[] {
  const choose = views.map((view) => {
    const first = view.id === "" ? "Built in" : views.find((one) => one.isSaved) === view ? "Saved" : null;
    return {
      id: `view-${view.id}`,
      title: view.name,
      isChosen: view === current,
      ...(first === null ? {} : { heading: first }),
      run: () => props.change({ ...view.restores, view: view.id }),
    };
  });
  const saved = current?.isSaved === true ? current : undefined;
  return [
    ...choose,
    ...(saved !== undefined && isChanged(saved, props.state)
      ? [{ id: "save", heading: "This view", title: `Save ${saved.name}`, run: () => void save(props, saved) }]
      : []),
    { id: "save-as", ...(saved === undefined ? { heading: "This view" } : {}), title: "Save as a new view…", run: () => open("save") },
    ...(saved === undefined
      ? []
      : [
          { id: "rename", title: `Rename ${saved.name}…`, run: () => open("rename") },
          { id: "delete", title: `Delete ${saved.name}…`, run: () => open("delete") },
        ]),
  ];
}

export function ViewMenu(props: ViewMenuProps) {
  const { state, projectId, change } = props;
  const { all, current } = useViews(props);
  const [opened, setOpened] = useState<ViewDialog | "none">("none");
  const close = (): void => setOpened("none");
  const name = current?.name ?? "All";
  return (
    <>
      <Menu
        label={`View: ${name}`}
        button={
          <>
            <span className="only-spoken">View: </span>
            <span className={style["view"]}>{name}</span>
            {current !== undefined && current.id !== "" && isChanged(current, state) && <span className={style["changed"]}>changed</span>}
            <Icon name="down" />
          </>
        }
        items={itemsOf(props, all, current, setOpened)}
      />
      {opened !== "none" && <ViewDialogs {...{ opened, state, projectId, change, current }} views={all} onClose={close} />}
    </>
  );
}
