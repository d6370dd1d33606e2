// The playgrounds of a project, the newest first.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { askToSignIn } from "../../../api/gate";
import { readPlayground, type PlaygroundRecord } from "../../../api/playground";
import { readingOf } from "../../../api/queries";
import { Button } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { Grid } from "../../../design/Grid";
import { createGridState, gridCommands, type GridColumn } from "../../../design/GridTypes";
import { Icon } from "../../../design/Icon";
import { Loaded } from "../../../design/Loaded";
import { Menu } from "../../../design/Menu";
import { Skeleton } from "../../../design/Skeleton";
import { useCommands, useLatest } from "../../../lib/commands";
import { exactCount } from "../../../lib/numbers";
import { preferences } from "../../../lib/preferences";
import { navigate } from "../../../lib/router";
import { fullMoment, now, shortMoment } from "../../../lib/time";
import { playgroundsQuery, type Place } from "../queries";
import { playgroundDefaults, writePlace } from "../url";
import { BLANK, withPrompt } from "../variants";
import style from "./List.module.css";
import { DeletePlayground, NewPlayground, RenamePlayground } from "./RecordDialogs";

const idOf = ({ id }: PlaygroundRecord): string => id;

type Opened = { readonly what: "none" | "new" } | { readonly what: "rename" | "delete"; readonly one: PlaygroundRecord };

function When({ created }: { readonly created: string }) {
  const at = created === "" ? null : new Date(created);
  return <span title={fullMoment(at)}>{shortMoment(at, now.value, preferences.value.zone)}</span>;
}

const rowsIn = ({ playground: { rows } }: PlaygroundRecord): string => (rows.kind === "dataset" ? rows.name : "One input");

function columnsOf(href: (id: string) => string, open: (opened: Opened) => void): readonly GridColumn<PlaygroundRecord>[] {
  const counted = (id: string, title: string, count: (one: PlaygroundRecord) => number): GridColumn<PlaygroundRecord> => ({
    id,
    title,
    width: 90,
    align: "end",
    cell: (one) => exactCount(count(one)),
  });
  return [
    {
      id: "name",
      title: "Playground",
      width: 160,
      grow: 2,
      cell: ({ id, name }) => (
        <a href={href(id)} tabIndex={-1} className={style["name"]} title={name}>
          {name}
        </a>
      ),
    },
    counted("prompts", "Prompts", ({ playground }) => playground.prompts.length),
    counted("columns", "Columns", ({ playground }) => playground.variants.length),
    { id: "rows", title: "Rows", width: 120, grow: 1, cell: rowsIn },
    counted("scorers", "Scorers", ({ playground }) => playground.scorers.length),
    { id: "created", title: "Created", width: 130, align: "end", cell: ({ created }) => <When created={created} /> },
    {
      id: "actions",
      title: "Actions",
      width: 72,
      cell: (one) => (
        <div className={style["actions"]}>
          <Menu
            label={`Actions of ${one.name}`}
            tabIndex={-1}
            isAlone
            button={<Icon name="more" />}
            items={[
              { id: "open", title: "Open", run: () => navigate(href(one.id), "push") },
              { id: "rename", title: "Rename", run: () => open({ what: "rename", one }) },
              { id: "delete", title: "Delete", run: () => open({ what: "delete", one }) },
            ]}
          />
        </div>
      ),
    },
  ];
}

/** What a new playground begins with. */
const START = withPrompt(readPlayground(null), BLANK);

export function List({ place }: { readonly place: Place }) {
  const query = useQuery(playgroundsQuery(place));
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const [grid] = useState(() => createGridState());
  const href = (id: string): string => writePlace(playgroundDefaults(place.organization, place.project, id));
  const openNew = useLatest(() => setOpened({ what: "new" }));
  const columns = useMemo(() => columnsOf(href, setOpened), [place.organization, place.project]);
  useCommands(
    useMemo(
      () => [
        { id: "playgrounds.new", title: "New playground", group: "Playgrounds", keys: "n", run: () => openNew() },
        ...gridCommands(grid, "Playgrounds", "playground").filter(({ keys }) => keys !== "x"),
      ],
      [grid, openNew],
    ),
  );
  const onClose = (): void => setOpened({ what: "none" });
  const taken = (query.data ?? []).map(({ name }) => name);
  return (
    <>
      <header className={style["head"]}>
        <h1 tabIndex={-1}>Playgrounds</h1>
        <Button icon="plus" onClick={openNew}>
          New playground
        </Button>
      </header>
      <div className={style["body"]}>
        <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={[[20, 6, 6], [20, 6, 6], [20, 6, 6]]} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
          {(all) =>
            all.length === 0 ? (
              <Empty
                action={
                  <Button look="primary" onClick={openNew}>
                    New playground
                  </Button>
                }
              >
                This project has no playground yet. In one, prompts are asked on several models side by side, over the rows of a dataset.
              </Empty>
            ) : (
              <Grid
                label="Playgrounds"
                state={grid}
                rows={all}
                rowId={idOf}
                columns={columns}
                total={all.length}
                isSelectable={false}
                onOpen={({ id }) => navigate(href(id), "push")}
              />
            )
          }
        </Loaded>
      </div>
      {opened.what === "new" && <NewPlayground {...{ place, taken, onClose }} playground={START} onMade={(id) => navigate(href(id), "push")} />}
      {opened.what === "rename" && <RenamePlayground {...{ place, onClose }} playground={opened.one} onRenamed={() => undefined} />}
      {opened.what === "delete" && <DeletePlayground {...{ place, onClose }} playground={opened.one} onDeleted={() => undefined} />}
    </>
  );
}
