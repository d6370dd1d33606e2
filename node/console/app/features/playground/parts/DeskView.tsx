// An open playground: its bar, the table of its cells, and the panel of what is open.
import { useEffect, useMemo, useRef } from "react";
import { askToSignIn } from "../../../api/gate";
import type { PlaygroundRecord } from "../../../api/playground";
import type { KeptRun } from "../../../api/playgroundRuns";
import { Button } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { ErrorState } from "../../../design/ErrorState";
import { readyAll } from "../../../design/Lazily";
import { Skeleton } from "../../../design/Skeleton";
import { useCommands, useLatest } from "../../../lib/commands";
import { exactCount } from "../../../lib/numbers";
import { playgroundCommands, type Action } from "../commands";
import type { Place } from "../queries";
import { ROWS_MAX } from "../rows";
import { useDesk, type Desk } from "../useDesk";
import type { PlaygroundState } from "../url";
import { BLANK, promptOf, withPrompt } from "../variants";
import { CellPanel } from "./CellPanel";
import style from "./Desk.module.css";
import { Dialogs, PromptPanel } from "./later";
import { TableView } from "./TableView";
import { Toolbar } from "./Toolbar";
import { useTable, type Table } from "./useTable";

function useDeskCommands(desk: Desk, table: Table): void {
  const run = useLatest((action: Action): void => {
    const { state, change, setOpened, editing } = desk;
    const cell = table.current();
    if (action === "run") desk.runAll();
    else if (action === "stop") desk.stop();
    else if (action === "retry") desk.retryFailed();
    else if (action === "down" || action === "up") table.step(action === "down" ? 1 : -1, 0);
    else if (action === "open" && cell !== null) change(cell);
    else if (action === "open") return;
    else if (action === "close") change({ variant: "", row: "" });
    else if (action === "diff") change({ isDiff: !state.isDiff });
    else if (action === "undo" || action === "redo") editing[action]();
    else setOpened({ what: action });
  });
  const now = useRef(desk);
  now.current = desk;
  const can = (action: Action): boolean => {
    const { state, playground, cursor } = now.current;
    if (action === "close") return state.variant !== "";
    if (action === "open") return cursor.at.peek() !== null;
    return action !== "models" || playground.prompts.length > 0;
  };
  useCommands(useMemo(() => playgroundCommands(run, can), [run]));
}

/** What stands in the place of the table while it has no rows or no columns. */
function Instead({ desk }: { readonly desk: Desk }) {
  const { playground, rows, editing, setOpened } = desk;
  if (playground.variants.length === 0) {
    const ways = (
      <>
        <Button look="primary" onClick={() => editing.edit((before) => withPrompt(before, BLANK))}>
          Add a blank prompt
        </Button>
        <Button onClick={() => setOpened({ what: "prompts" })}>Add prompts of the project</Button>
      </>
    );
    return <Empty action={ways}>A playground asks prompts on models. It has no prompt yet.</Empty>;
  }
  const { reading } = rows;
  if (reading !== null && reading.problem !== null) {
    return <ErrorState problem={reading.problem} onRetry={reading.again} onSignIn={() => void askToSignIn().then(reading.again)} />;
  }
  if (reading?.isReading === true) return <Skeleton lines={[[20, 40, 40], [20, 40, 40], [20, 40, 40]]} />;
  return (
    <Empty action={<Button onClick={() => setOpened({ what: "rows" })}>Choose other rows</Button>}>The dataset has no rows.</Empty>
  );
}

function Panel({ desk }: { readonly desk: Desk }) {
  const { state, playground, rows } = desk;
  const variant = playground.variants.find(({ id }) => id === state.variant);
  const prompt = promptOf(playground, variant);
  if (variant === undefined || prompt === null) return null;
  if (state.row !== "") return rows.byId.has(state.row) ? <CellPanel desk={desk} at={{ row: state.row, variant: variant.id }} /> : null;
  return <PromptPanel key={variant.id} {...{ desk, variant, prompt }} />;
}

interface DeskViewProps {
  readonly place: Place;
  readonly state: PlaygroundState;
  readonly record: PlaygroundRecord;
  readonly runs: readonly KeptRun[];
  readonly userId: string;
}

export function DeskView(props: DeskViewProps) {
  const desk = useDesk(props);
  const table = useTable(desk);
  useDeskCommands(desk, table);
  useEffect(() => readyAll([Dialogs, PromptPanel]), []);
  const hasTable = desk.playground.variants.length > 0 && desk.rows.all.length > 0;
  return (
    <div className={style["desk"]}>
      <Toolbar desk={desk} />
      {!desk.rows.isAll && <p className={style["note"]}>The first {exactCount(ROWS_MAX)} rows of the dataset are shown and run.</p>}
      <div className={style["body"]}>
        {hasTable ? <TableView desk={desk} table={table} /> : <Instead desk={desk} />}
        <Panel desk={desk} />
      </div>
      {desk.opened.what !== "none" && <Dialogs desk={desk} />}
    </div>
  );
}
