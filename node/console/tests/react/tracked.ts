// Lets components of React read signals: what was read while a component was drawn draws it again.
import { computed, effect, untracked } from "@preact/signals-core";
import { memo, useLayoutEffect, useReducer, type ElementType, type FunctionComponent } from "react";

type Props = Readonly<Record<string, unknown>>;
type Component = FunctionComponent<Props>;
type Drawn = ReturnType<Component>;

/** Draws once, and draws again after a signal has changed that was read meanwhile. */
function useTracked(draw: () => Drawn): Drawn {
  const [, drawAgain] = useReducer((times: number) => times + 1, 0);
  let isDrawing = true;
  let isOld = false;
  const drawn = computed(() => {
    if (isDrawing) return draw();
    isOld = true;
    return null;
  });
  const result = untracked(() => drawn.value);
  isDrawing = false;
  useLayoutEffect(() =>
    effect(() => {
      void drawn.value;
      if (isOld) drawAgain();
    }),
  );
  return result;
}

const known = new WeakMap<object, ElementType>();

function remember(type: object, make: () => ElementType): ElementType {
  const found = known.get(type) ?? make();
  known.set(type, found);
  if (typeof found !== "string") known.set(found, found);
  return found;
}

function ofFunction(component: Component): Component {
  const Tracked = (props: Props): Drawn => useTracked(() => component(props));
  Tracked.displayName = component.name;
  return Tracked;
}

interface Memo {
  readonly $$typeof: symbol;
  readonly type: Component;
  readonly compare: ((one: Props, other: Props) => boolean) | null;
}

const isMemo = (type: object): type is Memo => "$$typeof" in type && type.$$typeof === Symbol.for("react.memo");

const isFunction = (type: ElementType): type is Component =>
  typeof type === "function" && !("isReactComponent" in (type.prototype ?? {}));

/** The component that is drawn again when a signal changes that it has read. Names of elements stay. */
export function tracked(type: ElementType): ElementType {
  if (isFunction(type)) return remember(type, () => ofFunction(type));
  if (typeof type === "object" && type !== null && isMemo(type)) {
    const { type: inner, compare } = type;
    return remember(type, () => memo(ofFunction(inner), compare ?? undefined));
  }
  return type;
}
