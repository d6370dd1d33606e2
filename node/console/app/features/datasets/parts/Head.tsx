// The head of an open dataset: its name, how many rows it has, the filter, and what can be done with all of it.
import { Button, IconButton } from "../../../design/Button";
import { Icon } from "../../../design/Icon";
import { withKeys } from "../../../design/Kbd";
import { Menu } from "../../../design/Menu";
import { useLinks } from "../../../lib/links";
import { exactCount } from "../../../lib/numbers";
import type { Desk } from "../useDesk";
import style from "./Dataset.module.css";
import { ExportMenu } from "./ExportMenu";
import { FilterBox } from "./FilterBox";
import { copied } from "./listColumns";

interface HeadProps {
  readonly desk: Desk;
  readonly fault: string | null;
}

function Title({ desk }: { readonly desk: Desk }) {
  const links = useLinks();
  const { dataset, place, rows, state } = desk;
  const total = rows.total;
  return (
    <div className={style["title"]}>
      <a href={links.datasets(place.organization, place.project)} className={style["up"]} title="All datasets of the project">
        Datasets
      </a>
      <span aria-hidden="true">/</span>
      <h1 tabIndex={-1} title={dataset.description === "" ? undefined : dataset.description}>
        {dataset.name}
      </h1>
      {total !== undefined && state.compare === "" && rows.reading.data !== undefined && (
        <span className={style["count"]} role="status">
          {total === 1 ? "1 row" : `${exactCount(total)} rows`}
          {state.filter !== "" && " found"}
        </span>
      )}
    </div>
  );
}

export function Head({ desk, fault }: HeadProps) {
  const { state, change, isEditable, editing, setOpened, place, request, dataset } = desk;
  return (
    <header className={style["head"]}>
      <Title desk={desk} />
      {state.compare === "" && <FilterBox filter={state.filter} fault={fault} onFilter={(filter) => change({ filter })} />}
      <div className={style["tools"]}>
        {isEditable && (
          <>
            <Button icon="plus" title={withKeys("New row", "n")} onClick={editing.addRow}>
              Row
            </Button>
            <Button icon="upload" title={withKeys("Import rows", "i")} onClick={() => setOpened("import")}>
              Import
            </Button>
          </>
        )}
        {state.compare === "" && <ExportMenu place={place} request={request} />}
        <IconButton icon="history" label="Versions" onClick={() => setOpened("versions")} />
        <Menu
          label="More"
          isAlone
          button={<Icon name="more" />}
          items={[
            { id: "details", title: "Name, description and metadata", run: () => setOpened("details") },
            { id: "code", title: "Read it in code", run: () => setOpened("code") },
            { id: "uses", title: "Experiments that used it", run: () => setOpened("uses") },
            { id: "id", title: "Copy the id", run: () => void copied(dataset.id, "id") },
            { id: "delete", title: "Delete the dataset", run: () => setOpened("delete") },
          ]}
        />
      </div>
    </header>
  );
}
