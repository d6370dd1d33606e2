// The menu that downloads the rows that are shown.
import { problemOf } from "../../../lib/errors";
import { Icon } from "../../../design/Icon";
import { Menu } from "../../../design/Menu";
import { toast } from "../../../design/Toast";
import { EXPORT_KINDS, exportAddress, fileName, type ExportKind } from "../exporting";
import type { DatasetPlace, ListRequest } from "../queries";

const TITLES: Readonly<Record<ExportKind, string>> = {
  jsonl: "JSON lines",
  csv: "CSV",
  spreadsheet_csv: "CSV for spreadsheets",
  parquet: "Parquet",
};

function download(href: string, name: string): void {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}

interface ExportMenuProps {
  readonly place: DatasetPlace;
  readonly request: ListRequest;
}

export function ExportMenu({ place, request }: ExportMenuProps) {
  const run = async (kind: ExportKind): Promise<void> => {
    try {
      download(await exportAddress(place, request, kind), fileName(place.name));
      toast("The file is being written.");
    } catch (error) {
      toast(`The export failed. ${problemOf(error, 0).text}`, true);
    }
  };
  const heading = request.filter === "" ? "Export all rows" : "Export what the filter finds";
  return (
    <Menu
      label="Export"
      isAlone
      button={<Icon name="download" />}
      items={EXPORT_KINDS.map((kind, index) => ({
        id: kind,
        title: TITLES[kind],
        ...(index === 0 ? { heading } : {}),
        run: () => void run(kind),
      }))}
    />
  );
}
