// The permissions of a role as a grid of check boxes: kinds of objects by permissions. Arrows move in it.
import { useRef, useState, type KeyboardEvent } from "react";
import { KINDS, PERMISSIONS, permissionWords } from "../../../api/access";
import { classes } from "../../../design/classes";
import { grantedKey } from "../people";
import style from "./RoleGrid.module.css";

interface RoleGridProps {
  readonly chosen: ReadonlySet<string>;
  /** What comes through the roles in it: the name of such a role by permission. */
  readonly through: ReadonlyMap<string, string>;
  readonly isReadOnly: boolean;
  readonly onToggle: (key: string) => void;
}

const ROWS: readonly (readonly [kind: string | null, title: string])[] = [[null, "Everything"], ...KINDS];

const STEPS: Readonly<Record<string, readonly [row: number, column: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

const within = (at: number, count: number): number => Math.min(Math.max(at, 0), count - 1);

export function RoleGrid({ chosen, through, isReadOnly, onToggle }: RoleGridProps) {
  const table = useRef<HTMLTableElement>(null);
  const [[row, column], setAt] = useState<readonly [number, number]>([0, 0]);
  const move = (event: KeyboardEvent): void => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = [within(row + step[0], ROWS.length), within(column + step[1], PERMISSIONS.length)] as const;
    setAt(next);
    table.current?.querySelector<HTMLElement>(`[data-at="${next.join(" ")}"]`)?.focus();
  };
  return (
    <div className={style["box"]} tabIndex={-1}>
      <table ref={table} className={style["grid"]} aria-label="Permissions" onKeyDown={move}>
        <thead>
          <tr>
            <th scope="col">Kind of object</th>
            {PERMISSIONS.map((permission) => (
              <th key={permission} scope="col">
                {permissionWords(permission)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {ROWS.map(([kind, title], at) => (
            <tr key={title}>
              <th scope="row">{title}</th>
              {PERMISSIONS.map((permission, index) => {
                const key = grantedKey({ permission, kind });
                const role = through.get(key);
                const words = `${permissionWords(permission)}: ${title.toLowerCase()}`;
                return (
                  <td key={permission} className={classes(role !== undefined && style["through"])} title={role === undefined ? undefined : `Through ${role}`}>
                    <input
                      type="checkbox"
                      data-at={`${at} ${index}`}
                      aria-label={role === undefined ? words : `${words}, also through ${role}`}
                      aria-disabled={isReadOnly}
                      tabIndex={at === row && index === column ? 0 : -1}
                      checked={chosen.has(key)}
                      onFocus={() => setAt([at, index])}
                      onClick={(event) => {
                        if (isReadOnly) event.preventDefault();
                      }}
                      onChange={() => {
                        if (!isReadOnly) onToggle(key);
                      }}
                    />
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
