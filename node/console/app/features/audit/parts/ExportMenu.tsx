// The menu that downloads what the filter finds in the audit log.
import { prepareAuditFile, type AuditFilter, type AuditScope } from "../../../api/audit";
import { problemOf } from "../../../lib/errors";
import { Icon } from "../../../design/Icon";
import { Menu } from "../../../design/Menu";
import { toast } from "../../../design/Toast";

interface ExportMenuProps {
  readonly scope: AuditScope;
  readonly filter: AuditFilter;
}

const FORMATS = [
  ["jsonl", "JSON lines"],
  ["csv", "CSV"],
  ["parquet", "Parquet"],
] as const;

export function ExportMenu({ scope, filter }: ExportMenuProps) {
  const run = async (fmt: (typeof FORMATS)[number][0]): Promise<void> => {
    toast("The file is being written.");
    try {
      const link = document.createElement("a");
      link.href = await prepareAuditFile(scope, filter, fmt);
      link.download = `audit-log.${fmt}`;
      link.click();
    } catch (error) {
      toast(`The export failed. ${problemOf(error, 0).text}`, true);
    }
  };
  return (
    <Menu
      label="Export what the filter finds"
      button={
        <>
          <Icon name="download" /> Export
        </>
      }
      items={FORMATS.map(([fmt, title]) => ({ id: fmt, title, run: () => void run(fmt) }))}
    />
  );
}
