// Who may do what on an object.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { accessQuery, grantsQuery, rightsQuery, type Explanation } from "../../../api/access";
import { askToSignIn } from "../../../api/gate";
import { readingOf, until } from "../../../api/queries";
import { Button } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { createGridState, gridCommands, type GridState } from "../../../design/GridTypes";
import { Loaded } from "../../../design/Loaded";
import { SectionGrid } from "../../../design/SectionGrid";
import { Skeleton } from "../../../design/Skeleton";
import { useCommands, useLatest } from "../../../lib/commands";
import style from "../access.module.css";
import type { AskedObject } from "../queries";
import { subjectsOf, type Subject } from "../rows";
import type { AccessState } from "../url";
import type { Known } from "../useKnown";
import { objectWords } from "../words";
import { GrantDialog } from "./GrantDialog";
import { Legend, matrixColumns } from "./Marks";
import { SubjectDialog } from "./SubjectDialog";

interface ByObjectProps {
  readonly known: Known;
  readonly object: AskedObject;
  readonly state: AccessState;
  readonly go: (changed: Partial<AccessState>, how: "push" | "replace") => void;
}

const COLUMNS = matrixColumns("Who");
const BARS = [22, 6, 6, 6, 6, 10, 10, 10, 10];

const NONE: readonly never[] = [];

const rowId = (subject: Subject): string => subject.id;

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

function summaryOf(subjects: readonly Subject[], words: string): string {
  const groups = subjects.filter(({ isGroup }) => isGroup).length;
  const members = counted(subjects.length - groups, "member", "members");
  return `${members} and ${counted(groups, "group", "groups")} have access to the ${words}.`;
}

interface HeadProps {
  readonly explanation: Explanation;
  readonly subjects: readonly Subject[];
  readonly words: string;
  /** Absent for somebody who may grant nothing here. */
  readonly onGrant: (() => void) | null;
}

function Head({ explanation, subjects, words, onGrant }: HeadProps) {
  return (
    <div className={style["head"]}>
      <p aria-live="polite">
        {explanation.isOwnOnly
          ? "You see only your own access, because nothing lets you read the grants on this object."
          : summaryOf(subjects, words)}
        {explanation.isTruncated && " Only the first 1,000 members are listed."}
      </p>
      <Legend />
      {onGrant !== null && (
        <Button icon="plus" onClick={onGrant}>
          Grant access
        </Button>
      )}
    </div>
  );
}

interface MatrixProps extends ByObjectProps {
  readonly explanation: Explanation;
}

/** The keys of the matrix. */
function useMatrixCommands(grid: GridState, mayGrant: boolean, grant: () => void): void {
  const commands = useMemo(
    () => [
      ...gridCommands(grid, "Access", "person or group").filter(({ keys }) => keys !== "x"),
      ...(mayGrant ? [{ id: "access.grant", title: "Grant access", group: "Access", keys: "n", run: grant }] : []),
    ],
    [grid, mayGrant, grant],
  );
  useCommands(commands);
}

function Matrix({ known, object, state, go, explanation }: MatrixProps) {
  const { organization, me, members, groups, roles, nameOf, candidates } = known;
  const grants = useQuery(grantsQuery(organization.name, object.kind, object.id)).data ?? NONE;
  const rights = useQuery(rightsQuery(organization.name, object.kind, object.id, me)).data ?? NONE;
  const grid = useMemo(() => createGridState(state.who === "" ? null : state.who), []);
  const [isGranting, setGranting] = useState(false);
  const grant = useLatest(() => setGranting(true));
  const mayGrant = rights.includes("create_acls");
  useMatrixCommands(grid, mayGrant, grant);
  const subjects = useMemo(() => subjectsOf(explanation, grants, object, { groups, roles, members }), [explanation, grants, object, groups, roles, members]);
  const open = subjects.find(({ id }) => id === state.who) ?? known.subjectOf(state.who);
  const shared = { object, roles, nameOf };
  const close = (): void => go({ who: "" }, "replace");
  return (
    <>
      <Head explanation={explanation} subjects={subjects} words={objectWords(object, nameOf)} onGrant={mayGrant ? grant : null} />
      {subjects.length === 0 ? (
        <Empty>Nobody may do anything with this object.</Empty>
      ) : (
        <SectionGrid
          label="Who may do what"
          state={grid}
          rows={subjects}
          rowId={rowId}
          columns={COLUMNS}
          total={subjects.length}
          onOpen={(subject) => go({ who: subject.id }, "push")}
        />
      )}
      {open !== null && <SubjectDialog key={open.id} {...shared} organization={organization} subject={open} rights={rights} onClose={close} />}
      {isGranting && (
        <GrantDialog {...shared} organization={organization.name} candidates={candidates} grants={grants} onClose={() => setGranting(false)} />
      )}
    </>
  );
}

export function ByObject(props: ByObjectProps) {
  const { known, object } = props;
  const query = useQuery(accessQuery(known.organization.name, object.kind, object.id, known.me));
  return (
    <Loaded
      reading={until(!known.isReading, readingOf(query))}
      skeleton={<Skeleton lines={[[46], BARS, BARS, BARS, BARS]} />}
      onSignIn={() => void askToSignIn().then(() => query.refetch())}
    >
      {(explanation) => <Matrix {...props} explanation={explanation} />}
    </Loaded>
  );
}
