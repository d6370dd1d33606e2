// What is said where a trace has no spans: which rules may have deleted them, and where else they may be.
import { useQuery } from "@tanstack/react-query";
import { ButtonLink } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { useLinks } from "../../../lib/links";
import type { TracePanelProps } from "../../../lib/trace";
import { retentionQuery } from "../queries";

export function Absent({ props }: { readonly props: TracePanelProps }) {
  const { organization, project, root, version, source } = props;
  const links = useLinks();
  const rules = useQuery(retentionQuery(organization, project.id, source.kind)).data ?? [];
  const place = source.kind === "experiment" ? "this experiment" : project.name;
  const rule = rules.map(({ name, days }) => `The rule ${name} deletes rows after ${days} days.`).join(" ");
  const why =
    version !== ""
      ? "It may have been written after the version that is shown."
      : rule !== ""
        ? `${rule} The trace may have been older, or it belongs to another project.`
        : "No retention rule of the project deletes rows. The trace may belong to another project, it has not arrived yet, or somebody deleted it.";
  return (
    <Empty action={<ButtonLink href={links.logs(organization, project.name)}>Show the logs of {project.name}</ButtonLink>}>
      There is no span of the trace {root} in {place}. {why}
    </Empty>
  );
}
