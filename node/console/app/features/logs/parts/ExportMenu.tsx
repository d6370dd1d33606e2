// The menu that downloads what the list finds.
import { problemOf } from "../../../lib/errors";
import { Icon } from "../../../design/Icon";
import { Menu } from "../../../design/Menu";
import { toast } from "../../../design/Toast";
import { exactCount } from "../../../lib/numbers";
import type { ExportKind } from "../exporting";
import type { LogsRequest } from "../request";

interface ExportMenuProps {
  readonly organization: string;
  readonly project: string;
  readonly request: LogsRequest;
}

const KINDS: readonly (readonly [ExportKind, string])[] = [
  ["jsonl", "JSON lines"],
  ["csv", "CSV"],
  ["spreadsheet", "CSV for spreadsheets"],
  ["parquet", "Parquet"],
];

export function ExportMenu({ organization, project, request }: ExportMenuProps) {
  const run = async (kind: ExportKind): Promise<void> => {
    toast("The file is being written.");
    try {
      const { exportRows, fileName, SPREADSHEET_ROWS } = await import("../exporting");
      const count = await exportRows(organization, request, kind, fileName(project, request.shape));
      if (count !== null && count >= SPREADSHEET_ROWS) {
        toast(`The file holds the first ${exactCount(count)} rows. The other formats hold all.`);
      }
    } catch (error) {
      toast(`The export failed. ${problemOf(error, 0).text}`, true);
    }
  };
  return (
    <Menu
      label="Export what the filter finds"
      isAlone
      button={<Icon name="download" />}
      items={KINDS.map(([kind, title], index) => ({
        id: kind,
        title,
        ...(index === 0 ? { heading: "Export what the filter finds" } : {}),
        run: () => void run(kind),
      }))}
    />
  );
}
