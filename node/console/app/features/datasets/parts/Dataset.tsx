// An open dataset: its head, the grid, and what lies over it.
import { askToSignIn } from "../../../api/gate";
import type { Dataset as DatasetRecord } from "../../../api/datasets";
import { faultOf } from "../../../api/query";
import { Button } from "../../../design/Button";
import { CellEditor } from "../../../design/CellEditor";
import { Empty } from "../../../design/Empty";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import type { DatasetPlace } from "../queries";
import type { DatasetState } from "../url";
import { useDesk, useDeskCommands, useFollowingRow, type Desk } from "../useDesk";
import { cellLabel } from "../useEditing";
import { checkCell, kindsOf, textOf } from "../useFocusedCell";
import { Compare } from "./Compare";
import { Conflicts } from "./Conflicts";
import style from "./Dataset.module.css";
import { Dialogs } from "./Dialogs";
import { EditBar } from "./EditBar";
import { Head } from "./Head";
import { Leaving } from "./Leaving";
import { RowPanel } from "./RowPanel";
import { SelectionBar } from "./SelectionBar";
import { Sheet } from "./Sheet";
import { VersionBar } from "./VersionBar";

const LINES = Array.from({ length: 12 }, () => [10, 40, 36, 24, 12, 10]);

/** Why there are no rows, and the way out. */
function NoRows({ desk }: { readonly desk: Desk }) {
  const { state, change, isEditable, editing, setOpened } = desk;
  if (state.filter !== "") {
    return (
      <Empty action={<Button onClick={() => change({ filter: "" })}>Show all rows</Button>}>
        No row fulfils the filter.
      </Empty>
    );
  }
  if (!isEditable) {
    return (
      <Empty action={<Button onClick={() => change({ version: "" })}>Show the dataset as it is now</Button>}>
        The dataset had no rows at this version.
      </Empty>
    );
  }
  const ways = (
    <>
      <Button look="primary" onClick={() => setOpened("import")}>
        Import a file
      </Button>
      <Button onClick={editing.addRow}>New row</Button>
    </>
  );
  return <Empty action={ways}>This dataset has no rows yet. Import a file, add a row, or add rows from the logs.</Empty>;
}

function Editor({ desk }: { readonly desk: Desk }) {
  const { cell, schemas } = desk;
  const { open } = cell;
  if (open === null) return null;
  return (
    <CellEditor
      label={cellLabel(open.cell.column, open.row)}
      kinds={kindsOf(open.field, open.value)}
      textOf={(kind) => textOf(open.value, kind)}
      check={(text, kind) => checkCell(open, schemas, text, kind)}
      onDone={cell.done}
      onCancel={cell.cancel}
      at={open.at}
    />
  );
}

/** The grid, in each of its states. */
function Rows({ desk }: { readonly desk: Desk }) {
  const { rows, shown, context, cell, editing, store } = desk;
  const total = rows.total === undefined ? undefined : rows.total + store.history.value.present.added.length;
  return (
    <Loaded
      reading={rows.reading}
      skeleton={<Skeleton lines={LINES} />}
      onSignIn={() => void askToSignIn().then(() => rows.reading.again())}
    >
      {() =>
        shown.length === 0 ? (
          <NoRows desk={desk} />
        ) : (
          <Sheet
            label={`Rows of ${desk.dataset.name}`}
            rows={shown}
            total={total}
            context={context}
            isReadingMore={rows.isReadingMore}
            onEnd={rows.more}
            onOpen={cell.start}
            onEmpty={editing.empty}
            onPaste={editing.onPaste}
            onCopy={editing.onCopy}
          />
        )
      }
    </Loaded>
  );
}

export interface DatasetProps {
  readonly state: DatasetState;
  readonly place: DatasetPlace;
  readonly dataset: DatasetRecord;
}

export function Dataset({ state, place, dataset }: DatasetProps) {
  const desk = useDesk(state, place, dataset);
  useDeskCommands(desk);
  useFollowingRow(desk);
  const { saving, store, sheet, isEditable, editing, setOpened } = desk;
  const fault = faultOf(desk.rows.error);
  return (
    <div className={style["dataset"]}>
      <Head desk={desk} fault={fault === null ? null : `Column ${fault.column}: ${fault.message}`} />
      <VersionBar desk={desk} />
      <div className={style["body"]}>
        <div className={style["main"]}>
          <div className={style["list"]}>{state.compare === "" ? <Rows desk={desk} /> : <Compare desk={desk} />}</div>
          <div className={style["bars"]}>
            <SelectionBar sheet={sheet} isEditable={isEditable} onFill={editing.fill} onDelete={() => setOpened("delete-rows")} />
            {isEditable && <EditBar store={store} isSaving={saving.isSaving} onSave={saving.save} />}
          </div>
        </div>
        {state.row !== "" && state.compare === "" && <RowPanel desk={desk} />}
      </div>
      <Editor desk={desk} />
      <Dialogs desk={desk} />
      <Leaving desk={desk} />
      {saving.conflicts.length > 0 && (
        <Conflicts conflicts={saving.conflicts} onDecide={saving.decide} onClose={saving.dismiss} />
      )}
    </div>
  );
}
