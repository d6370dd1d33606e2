// The columns of permissions, with a mark for each: full where it is granted, half where it is inherited.
import { PERMISSIONS, permissionWords, type Way } from "../../../api/access";
import { classes } from "../../../design/classes";
import type { GridColumn } from "../../../design/GridTypes";
import style from "../access.module.css";
import { holdOf, type Hold } from "../rows";

const WORDS: Readonly<Record<Hold, string>> = { here: "granted here", inherited: "inherited", none: "no" };

export function Mark({ hold, what }: { readonly hold: Hold; readonly what: string }) {
  return (
    <span title={`${what}: ${WORDS[hold]}`}>
      <span className={classes(style["mark"], style[hold === "none" ? "nothing" : hold])} />
      <span className="only-spoken">{WORDS[hold]}</span>
    </span>
  );
}

const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

const MARKS: readonly GridColumn<{ readonly ways: readonly Way[] }>[] = PERMISSIONS.map((permission) => ({
  id: permission,
  title: capital(permissionWords(permission)),
  width: permission.endsWith("_acls") ? 104 : 72,
  cell: ({ ways }) => <Mark hold={holdOf(ways, permission)} what={permissionWords(permission)} />,
}));

export interface Shown {
  readonly name: string;
  readonly detail: string;
  readonly ways: readonly Way[];
}

/** The columns of a matrix, whose first one is called `title`. */
export const matrixColumns = (title: string): readonly GridColumn<Shown>[] => [
  {
    id: "name",
    title,
    width: 200,
    grow: 1,
    cell: ({ name, detail }) => (
      <span className={style["name"]} title={name}>
        <span>{name}</span>
        <span className={style["soft"]}>{detail}</span>
      </span>
    ),
  },
  ...MARKS,
];

/** What the marks mean. */
export function Legend() {
  return (
    <span className={style["legend"]} aria-hidden="true">
      <span className={classes(style["mark"], style["here"])} /> granted here
      <span className={classes(style["mark"], style["inherited"])} /> inherited
    </span>
  );
}
