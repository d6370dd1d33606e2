// What a person reaches: the organization, what it has one of, and its projects.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { rightsQuery } from "../../../api/access";
import { askToSignIn } from "../../../api/gate";
import { readingOf, until } from "../../../api/queries";
import { Button } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { createGridState, gridCommands } from "../../../design/GridTypes";
import { Loaded } from "../../../design/Loaded";
import { SectionGrid } from "../../../design/SectionGrid";
import { Skeleton } from "../../../design/Skeleton";
import { useCommands } from "../../../lib/commands";
import style from "../access.module.css";
import { reachQuery, singles, type AskedObject, type Reach } from "../queries";
import type { AccessState } from "../url";
import type { Known } from "../useKnown";
import { Legend, matrixColumns } from "./Marks";
import { SubjectDialog } from "./SubjectDialog";

interface ByPersonProps {
  readonly known: Known;
  readonly state: AccessState;
  readonly go: (changed: Partial<AccessState>, how: "push" | "replace") => void;
}

/** How many projects are asked about at once, as each is a request. */
const PAGE = 50;

const COLUMNS = matrixColumns("What");
const BARS = [22, 6, 6, 6, 6, 10, 10, 10, 10];

interface Row extends Reach {
  readonly detail: string;
}

const rowId = ({ kind, id }: AskedObject): string => `${kind} ${id}`;

interface ReachedProps extends ByPersonProps {
  readonly found: readonly Reach[];
}

function Reached({ known, state, go, found }: ReachedProps) {
  const { organization, roles, nameOf } = known;
  const grid = useMemo(() => createGridState(), []);
  const commands = useMemo(() => gridCommands(grid, "Access", "object").filter(({ keys }) => keys !== "x"), [grid]);
  useCommands(commands);
  const rows: readonly Row[] = found
    .filter(({ ways }) => ways.length > 0)
    .map((one) => ({ ...one, detail: one.kind === "project" ? "project" : "" }));
  const open = state.who === "" ? undefined : found.find(({ kind, id }) => kind === state.kind && id === state.id);
  const rights = useQuery({
    ...rightsQuery(organization.name, open?.kind ?? "", open?.id ?? "", known.me),
    enabled: open !== undefined,
  }).data;
  const subject = known.subjectOf(state.user);
  const projects = found.filter(({ kind }) => kind === "project").length;
  const reached = rows.filter(({ kind }) => kind === "project").length;
  return (
    <>
      <div className={style["head"]}>
        <p aria-live="polite">
          {nameOf(state.user)} reaches {reached} of {projects} {projects === 1 ? "project" : "projects"}.
        </p>
        <Legend />
      </div>
      {rows.length === 0 ? (
        <Empty>{nameOf(state.user)} reaches nothing of this organization.</Empty>
      ) : (
        <SectionGrid
          label="What they reach"
          state={grid}
          rows={rows}
          rowId={rowId}
          columns={COLUMNS}
          total={rows.length}
          onOpen={({ kind, id }) => go({ kind, id, who: state.user }, "push")}
        />
      )}
      {open !== undefined && subject !== null && (
        <SubjectDialog
          organization={organization}
          object={open}
          subject={{ ...subject, ways: open.ways }}
          roles={roles}
          rights={rights ?? []}
          nameOf={nameOf}
          onClose={() => go({ kind: "organization", id: "", who: "" }, "replace")}
        />
      )}
    </>
  );
}

export function ByPerson(props: ByPersonProps) {
  const { known, state, go } = props;
  const { organization, projects } = known;
  const [count, setCount] = useState(PAGE);
  const asked = projects.slice(0, count).map(({ id, name }): AskedObject => ({ kind: "project", id, name }));
  const query = useQuery(reachQuery(organization.name, state.user, [...singles(organization.id), ...asked]));
  const rest = projects.length - asked.length;
  return (
    <>
      <div className={style["picker"]}>
        <label>
          Person
          <select value={state.user} onChange={(event) => go({ user: event.currentTarget.value, who: "" }, "push")}>
            {state.user === "" && <option value="">Choose one</option>}
            {known.members.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {state.user === "" ? (
        <Empty>Choose a person to see everything that they reach.</Empty>
      ) : (
        <Loaded
          reading={until(!known.isReading, readingOf(query))}
          skeleton={<Skeleton lines={[BARS, BARS, BARS]} />}
          onSignIn={() => void askToSignIn().then(() => query.refetch())}
        >
          {(found) => <Reached {...props} found={found} />}
        </Loaded>
      )}
      {rest > 0 && state.user !== "" && (
        <p>
          <Button onClick={() => setCount(count + PAGE)}>Ask about {Math.min(PAGE, rest)} more of {rest} projects</Button>
        </p>
      )}
    </>
  );
}
