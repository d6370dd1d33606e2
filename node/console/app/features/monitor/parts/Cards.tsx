// The cards in their order, which dragging and keys change.
import { useEffect, useRef, useState, type DragEvent } from "react";
import { announce } from "../../../lib/store";
import { cardKey, movedCard, titleOf, type Card as CardOf } from "../cards";
import type { Plan, Scope } from "../queries";
import { Card } from "./Card";
import type { Moving } from "./Handle";
import style from "./Monitor.module.css";

interface CardsProps {
  readonly cards: readonly CardOf[];
  readonly scope: Scope;
  readonly plan: Plan | null;
  readonly project: string;
  /** The version that is shown, as addresses have it; empty for now. */
  readonly version: string;
  readonly range: string;
  readonly before: { readonly error: unknown; readonly again: () => void } | null;
  readonly onArrange: (cards: readonly CardOf[]) => void;
  readonly onEdit: (card: CardOf) => void;
}

/** Moves cards; while one is dragged, the place where it would go is marked. */
function useMoves({ cards, scope, onArrange }: CardsProps) {
  const list = useRef<HTMLDivElement>(null);
  const [dragged, setDragged] = useState<number | null>(null);
  const [over, setOver] = useState<number | null>(null);
  const focused = useRef<string | null>(null);
  useEffect(() => {
    const title = focused.current;
    focused.current = null;
    if (title === null) return;
    const handle = list.current?.querySelector<HTMLElement>(`[data-card="${CSS.escape(title)}"]`);
    handle?.focus();
    handle?.scrollIntoView({ block: "nearest" });
  }, [cards]);
  const move = (from: number, to: number): void => {
    const place = Math.min(Math.max(to, 0), cards.length - 1);
    const card = cards[from];
    if (card === undefined || place === from) return;
    const title = titleOf(card, scope.shape);
    focused.current = title;
    onArrange(movedCard(cards, from, place));
    announce(`${title} is at place ${place + 1} of ${cards.length}`);
  };
  const end = (): void => {
    setDragged(null);
    setOver(null);
  };
  const movingOf = (index: number): Moving => ({
    onStart: (event: DragEvent<HTMLElement>) => {
      event.dataTransfer.effectAllowed = "move";
      event.dataTransfer.setData("text/plain", cardKey(cards[index] ?? { kind: "fixed", id: "traces" }));
      setDragged(index);
    },
    onEnd: end,
    onStep: (by) => move(index, index + by),
    place: {
      "data-drop": dragged === null || over !== index || over === dragged ? undefined : over < dragged ? "before" : "after",
      onDragOver: (event) => {
        if (dragged === null) return;
        event.preventDefault();
        if (over !== index) setOver(index);
      },
      onDrop: (event) => {
        if (dragged === null) return;
        event.preventDefault();
        move(dragged, index);
        end();
      },
    },
  });
  return { list, movingOf };
}

export function Cards(props: CardsProps) {
  const { cards, scope, onArrange, onEdit } = props;
  const { list, movingOf } = useMoves(props);
  const remove = (card: CardOf): void => {
    onArrange(cards.filter((one) => one !== card));
    announce(`${titleOf(card, scope.shape)} is removed`);
    list.current?.focus();
  };
  return (
    <div ref={list} className={style["cards"]} role="group" aria-label="Cards" tabIndex={-1}>
      {cards.map((card, index) => (
        <Card
          key={`${scope.shape} ${scope.group === ""} ${cardKey(card)}`}
          {...props}
          card={card}
          moving={movingOf(index)}
          onRemove={() => remove(card)}
          onEdit={card.kind === "own" ? () => onEdit(card) : undefined}
        />
      ))}
    </div>
  );
}
