// What can be granted, as check boxes: permissions and roles.
import { permissionWords, type Named } from "../../../api/access";
import style from "../access.module.css";
import { giftKey, giftOf, plainKeys } from "../rows";
import { giftWords } from "../words";

interface GiftsProps {
  readonly legend: string;
  /** The only kind that the permissions are for; null for all. */
  readonly restrict: string | null;
  readonly roles: readonly Named[];
  readonly chosen: ReadonlySet<string>;
  /** More keys to show beside the usual ones. */
  readonly more?: readonly string[];
  readonly onToggle: (key: string) => void;
}

function titleOf(key: string, restrict: string | null, roles: readonly Named[]): string {
  const gift = giftOf(key);
  if (gift.role !== null) return `role ${roles.find(({ id }) => id === gift.role)?.name ?? gift.role}`;
  const permission = gift.permission ?? "";
  return gift.restrict === restrict ? permissionWords(permission) : giftWords(permission, gift.restrict);
}

export function Gifts({ legend, restrict, roles, chosen, more = [], onToggle }: GiftsProps) {
  const usual = [...plainKeys(restrict), ...roles.map(({ id }) => giftKey({ permission: null, restrict: null, role: id }))];
  const keys = [...usual, ...more.filter((key) => !usual.includes(key))];
  return (
    <fieldset className={style["gifts"]}>
      <legend>{legend}</legend>
      {keys.map((key) => (
        <label key={key}>
          <input type="checkbox" checked={chosen.has(key)} onChange={() => onToggle(key)} />
          <span>{titleOf(key, restrict, roles)}</span>
        </label>
      ))}
    </fieldset>
  );
}
