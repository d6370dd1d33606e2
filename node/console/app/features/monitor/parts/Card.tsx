// A card of the monitor: one query, asked while the card is on the screen.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState, type ReactNode } from "react";
import { Icon } from "../../../design/Icon";
import { Menu, type MenuItem } from "../../../design/Menu";
import { useLinks } from "../../../lib/links";
import { atVersion } from "../../../lib/version";
import { navigate } from "../../../lib/router";
import { isList, isSum, measureNames, titleOf, toneOf, unitOfCard, type Card as CardOf, type FixedId } from "../cards";
import { listedPath, listQuery, linesQuery, type Plan, type Scope } from "../queries";
import { isNothing, shortUnitText, shownLines, totalOf, type Drawn } from "../series";
import { summaryOf } from "../summaries";
import { bucketRange, listTarget, targetOf, type Target } from "../targets";
import style from "./Card.module.css";
import { Lines, Read } from "./CardBody";
import { Handle, type Moving } from "./Handle";
import { useSeen } from "./useSeen";
import { ValueList } from "./ValueList";

export interface CardProps {
  readonly card: CardOf;
  readonly scope: Scope;
  /** Null until it is known what all cards share. */
  readonly plan: Plan | null;
  readonly project: string;
  readonly version: string;
  readonly range: string;
  /** What failed for all cards; null if nothing did. */
  readonly before: { readonly error: unknown; readonly again: () => void } | null;
  readonly moving: Moving;
  readonly onRemove: () => void;
  /** Opens the dialog that changes an own chart; absent for others. */
  readonly onEdit: (() => void) | undefined;
}

/** Opens the logs of what was chosen on a card. */
function useTargets({ scope, project, version, plan }: CardProps) {
  const links = useLinks();
  const shown = { shape: scope.shape, filter: scope.filter, group: scope.group, groups: plan?.groups ?? null };
  const hrefOf = (target: Target): string => atVersion(links.logsWhere(scope.organization, project, target), version);
  return { shown, hrefOf, open: (target: Target): void => navigate(hrefOf(target), "push") };
}

interface FrameProps extends CardProps {
  readonly title: string;
  readonly headline: string;
  readonly choice: ReactNode;
  readonly items: readonly MenuItem[];
  readonly children: ReactNode;
}

function Frame({ title, headline, choice, items, moving, children }: FrameProps) {
  return (
    <>
      <header className={style["head"]}>
        <Handle title={title} moving={moving} />
        <h2 className={style["title"]} title={title}>
          {title}
        </h2>
        {headline !== "" && <span className={style["headline"]}>{headline}</span>}
        <span className={style["space"]} />
        {choice}
        <Menu label={`Actions of ${title}`} isAlone button={<Icon name="more" />} items={items} />
      </header>
      <div className={style["body"]}>{children}</div>
    </>
  );
}

/** What can be done with every card. */
function itemsOf({ onRemove, onEdit }: CardProps, first: readonly MenuItem[]): readonly MenuItem[] {
  return [
    ...first,
    ...(onEdit === undefined ? [] : [{ id: "edit", title: "Change the chart…", run: onEdit }]),
    { id: "remove", title: "Remove the card", run: onRemove },
  ];
}

function Nothing({ children }: { readonly children: ReactNode }) {
  return <p className={style["nothing"]}>{children}</p>;
}

const NOUNS: Readonly<Record<FixedId, string>> = {
  traces: "traces",
  errors: "errors",
  duration: "durations",
  ttft: "times to the first token",
  tokens: "counts of tokens",
  cost: "costs",
  models: "models",
  failures: "errors",
};

function emptyWords({ scope, card }: CardProps, title: string): string {
  if (scope.group !== "") return `No ${scope.shape === "traces" ? "trace" : "span"} with a value of ${scope.group} has this.`;
  switch (card.kind) {
    case "own":
    case "score":
      return `No value of ${title} in this range.`;
    case "fixed":
      return `No ${NOUNS[card.id]} in this range.`;
  }
}

interface ChoiceProps {
  readonly title: string;
  readonly names: readonly string[];
  readonly chosen: number;
  readonly onChoose: (index: number) => void;
}

/** Chooses which of a card's measures is drawn for each group. */
function Choice({ title, names, chosen, onChoose }: ChoiceProps) {
  return (
    <select
      className={style["choice"]}
      aria-label={`What ${title} shows`}
      value={chosen}
      onChange={(event) => onChoose(Number(event.currentTarget.value))}
    >
      {names.map((name, index) => (
        <option key={name} value={index}>
          {name}
        </option>
      ))}
    </select>
  );
}

const NO_PLAN_EXTENT = { from: 0, to: 1000 };

function headlineOf(drawn: Drawn | undefined, card: CardOf, isGrouped: boolean, chosen: number): string {
  if (drawn === undefined || !isSum(card)) return "";
  const lines = isGrouped ? (drawn.measures[chosen] ?? []) : (drawn.measures[0] ?? []);
  return shortUnitText(totalOf(lines), unitOfCard(card));
}

function LinesCard(props: CardProps & { readonly isSeen: boolean }) {
  const { card, scope, plan, range, before, isSeen } = props;
  const title = titleOf(card, scope.shape);
  const [isTable, setTable] = useState(false);
  const names = measureNames(card, scope.shape);
  const isGrouped = scope.group !== "";
  const [chosen, setChosen] = useState(() => Math.max(0, names.indexOf("p95")));
  const known = plan ?? { scope, extent: NO_PLAN_EXTENT, tzOffset: 0, groups: null };
  const request = linesQuery(card, known);
  const isAsked = isSeen && plan !== null && before === null;
  const query = useQuery({ ...request, enabled: isAsked });
  const { shown, open, hrefOf } = useTargets(props);
  const unit = unitOfCard(card);
  const drawn = query.data;
  const lines = useMemo(() => {
    const found = drawn === undefined ? [] : shownLines(drawn, isGrouped, chosen);
    const tone = isGrouped ? undefined : toneOf(card);
    return tone === undefined ? found : found.map((line) => ({ ...line, tone }));
  }, [drawn, isGrouped, chosen, card]);
  const lineOf = (line: string | null): string | null => (isGrouped ? line : null);
  const at = (from: number, to: number, line: string | null): void => {
    if (drawn !== undefined) open(targetOf(card, shown, bucketRange(drawn, from, to), lineOf(line)));
  };
  const items = itemsOf(props, [
    { id: "form", title: isTable ? "Show as a chart" : "Show as a table", run: () => setTable(!isTable) },
    { id: "logs", title: "Open the logs", run: () => navigate(hrefOf(targetOf(card, shown, range, null)), "push") },
  ]);
  const headline = headlineOf(drawn, card, isGrouped, chosen);
  const choice = isGrouped && names.length > 1 && <Choice {...{ title, names, chosen }} onChoose={setChosen} />;
  return (
    <Frame {...props} {...{ title, headline, choice, items }}>
      <Read {...{ query, isAsked, before }} queryKey={request.queryKey}>
        {(one) =>
          isNothing(lines, isSum(card)) ? (
            <Nothing>{emptyWords(props, title)}</Nothing>
          ) : (
            <Lines
              {...{ title, lines, unit, isTable }}
              drawn={one}
              summary={summaryOf(title, one, lines, { unit, isSum: isSum(card) })}
              onPoint={(x, line) => at(x, x, line)}
              onRange={(from, to) => at(from, to, null)}
            />
          )
        }
      </Read>
    </Frame>
  );
}

function ListCard(props: CardProps & { readonly isSeen: boolean }) {
  const { card, scope, range, before, isSeen } = props;
  const title = titleOf(card, scope.shape);
  const request = listQuery(card, scope);
  const isAsked = isSeen && before === null;
  const query = useQuery({ ...request, enabled: isAsked });
  const { shown, hrefOf } = useTargets(props);
  const path = listedPath(card).join(".");
  return (
    <Frame {...props} title={title} headline="" choice={null} items={itemsOf(props, [])}>
      <Read {...{ query, isAsked, before }} isList queryKey={request.queryKey}>
        {(values) =>
          values.length === 0 ? (
            <Nothing>{path === "error" ? "No errors in this range." : "No span names a model in this range."}</Nothing>
          ) : (
            <ValueList {...{ card, values }} label={title} hrefOf={(value) => hrefOf(listTarget(shown, range, value, path))} />
          )
        }
      </Read>
    </Frame>
  );
}

export function Card(props: CardProps) {
  const { card, scope, moving } = props;
  const element = useRef<HTMLElement>(null);
  const isSeen = useSeen(element);
  const shown = { ...props, isSeen };
  return (
    <section ref={element} className={style["card"]} aria-label={titleOf(card, scope.shape)} {...moving.place}>
      {isList(card) ? <ListCard {...shown} /> : <LinesCard {...shown} />}
    </section>
  );
}
