// The panel that explains a selection: fields by how differently the selection and the rest have them.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import { path as pathText } from "../../../btql";
import { IconButton } from "../../../design/Button";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { exactCount } from "../../../lib/numbers";
import { preferences, type Zone } from "../../../lib/preferences";
import { announce } from "../../../lib/store";
import { rowWord, type Scope } from "../filter/scope";
import { extentWords } from "../histogram/bars";
import { numberChip, valueChip } from "./chips";
import style from "./Explain.module.css";
import { NumbersShown, ValuesShown } from "./FieldShown";
import { explainQuery, type Explanation } from "./queries";
import type { Side } from "./ranking";
import type { Selection } from "./selection";

export interface ExplainPanelProps {
  readonly scope: Scope;
  readonly selection: Selection;
  /** The ids of the rows that are selected in the list, which can be explained, too. */
  readonly selected: readonly string[];
  readonly onSelection: (selection: Selection) => void;
  /** Narrows the list by one more expression. */
  readonly onFilter: (expression: string) => void;
  readonly onClose: () => void;
}

function nameOf(selection: Selection, zone: Zone): string {
  switch (selection.kind) {
    case "errors":
      return "With errors";
    case "time": {
      const { from, to } = selection.bounds;
      return from === null || to === null ? "A range" : extentWords({ from: Date.parse(from), to: Date.parse(to) }, zone);
    }
    case "rows":
      return `${exactCount(selection.ids.length)} selected`;
  }
}

interface ChoiceProps extends ExplainPanelProps {
  readonly zone: Zone;
}

/** Chooses what is explained. A range is chosen in the histogram, and rows in the list. */
function Choice({ selection, selected, onSelection, zone }: ChoiceProps) {
  const rows: Selection = { kind: "rows", ids: selected };
  const options: readonly Selection[] = [
    { kind: "errors" },
    ...(selected.length > 0 ? [rows] : []),
    ...(selection.kind === "time" || (selection.kind === "rows" && selected.length === 0) ? [selection] : []),
  ];
  return (
    <div className={style["choice"]} role="group" aria-label="What is explained">
      {options.map((option) => (
        <button
          key={option.kind}
          type="button"
          className={style["option"]}
          aria-pressed={option.kind === selection.kind}
          onClick={() => onSelection(option)}
        >
          {nameOf(option, zone)}
        </button>
      ))}
    </div>
  );
}

const sizeOf = ({ spans, traces }: Side, { shape }: Scope): number => (shape === "traces" ? traces : spans);

const sizeWords = (side: Side, scope: Scope): string => `${exactCount(sizeOf(side, scope))} ${rowWord(scope.shape, sizeOf(side, scope))}`;

function sampleWords({ inside, outside }: Explanation): string {
  const parts = [inside, outside].map(({ read, spans }, index) =>
    read < spans ? [`${exactCount(read)} of ${exactCount(spans)} spans of ${index === 0 ? "the selection" : "the rest"}`] : [],
  );
  return parts.flat().join(" and ");
}

function Sizes({ found, scope }: { readonly found: Explanation; readonly scope: Scope }) {
  const sample = sampleWords(found);
  return (
    <>
      <dl className={style["sizes"]}>
        <div>
          <dt>
            <span className={style["inside"]} aria-hidden="true" />
            Selection
          </dt>
          <dd>{sizeWords(found.inside, scope)}</dd>
        </div>
        <div>
          <dt>
            <span className={style["outside"]} aria-hidden="true" />
            The rest
          </dt>
          <dd>{sizeWords(found.outside, scope)}</dd>
        </div>
      </dl>
      {sample !== "" && <p className={style["note"]}>Values are those of a sample: {sample}.</p>}
    </>
  );
}

function emptyWords({ inside, outside }: Explanation, scope: Scope, selection: Selection): string {
  if (sizeOf(inside, scope) === 0) {
    return selection.kind === "errors" ? "Nothing in this list has an error." : "The selection is not in this list any more.";
  }
  if (sizeOf(outside, scope) === 0) return "The selection is the whole list, so there is nothing to compare it with.";
  return "The selection and the rest are alike, as far as so few rows can tell.";
}

function Found({ found, ...props }: ExplainPanelProps & { readonly found: Explanation }) {
  const { scope, selection, onFilter } = props;
  const { shape, filter } = scope;
  const count = found.fields.length;
  useEffect(() => announce(`${exactCount(count)} ${count === 1 ? "field differs" : "fields differ"}`), [found]);
  return (
    <>
      <Sizes found={found} scope={scope} />
      {count === 0 ? (
        <p className={style["empty"]}>{emptyWords(found, scope, selection)}</p>
      ) : (
        <ol className={style["fields"]} aria-label="Fields by their difference">
          {found.fields.map((field) => (
            <li key={pathText(field.path)} className={style["field"]}>
              {field.kind === "values" ? (
                <ValuesShown field={field} onValue={(value) => onFilter(valueChip(field.path, value, shape, filter))} />
              ) : (
                <NumbersShown field={field} onFilter={() => onFilter(numberChip(field, shape, filter))} />
              )}
            </li>
          ))}
        </ol>
      )}
      {count > 0 && found.alike > 0 && (
        <p className={style["note"]}>
          {found.alike === 1 ? "One more field is" : `${exactCount(found.alike)} more fields are`} alike in both.
        </p>
      )}
    </>
  );
}

const LINES = [[40], [90, 10], [70], [90, 10], [80], [60]];

export function ExplainPanel(props: ExplainPanelProps) {
  const { scope, selection, onClose } = props;
  const { zone } = preferences.value;
  const element = useRef<HTMLElement>(null);
  const query = useQuery(explainQuery(scope, selection));
  useEffect(() => element.current?.focus(), []);
  const narrow = (expression: string): void => {
    // What was clicked is gone once the list holds nothing else, and would take the focus with it.
    element.current?.focus();
    props.onFilter(expression);
  };
  return (
    <aside
      ref={element}
      tabIndex={-1}
      className={style["panel"]}
      aria-label="Explanation"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        onClose();
      }}
    >
      <header className={style["head"]}>
        <h2 className={style["title"]}>What is different</h2>
        <IconButton icon="close" label="Close the explanation" onClick={onClose} />
      </header>
      <Choice {...props} zone={zone} />
      <div className={style["scroll"]} aria-busy={query.isPlaceholderData}>
        <Loaded
          reading={readingOf(query)}
          skeleton={<Skeleton lines={LINES} />}
          onSignIn={() => void askToSignIn().then(() => query.refetch())}
        >
          {(found) => (
            <div className={query.isPlaceholderData ? style["old"] : undefined}>
              <Found {...props} found={found} onFilter={narrow} />
            </div>
          )}
        </Loaded>
      </div>
    </aside>
  );
}
