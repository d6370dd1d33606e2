// A part of a screen whose code is loaded when it is first shown, or before.
import { useEffect, useState, type ComponentType, type ReactNode } from "react";
import { Button } from "./Button";

interface LazyPart<Props> {
  (props: Props): ReactNode;
  /** Loads the code, so that the part is there at once when it is shown. */
  readonly ready: () => Promise<void>;
}

/** Returns a component that shows nothing until its code is there, and offers to try again where loading failed. */
export function lazily<Props extends object>(load: () => Promise<ComponentType<Props>>): LazyPart<Props> {
  let loaded: ComponentType<Props> | null = null;
  const ready = async (): Promise<void> => {
    loaded ??= await load();
  };
  function Lazily(props: Props) {
    const [Shown, setShown] = useState<ComponentType<Props> | null>(() => loaded);
    const [isFailed, setFailed] = useState(false);
    useEffect(() => {
      if (Shown !== null || isFailed) return;
      ready().then(
        () => setShown(() => loaded),
        () => setFailed(true),
      );
    }, [isFailed]);
    if (Shown !== null) return <Shown {...props} />;
    return isFailed ? <Button onClick={() => setFailed(false)}>Load this part again</Button> : null;
  }
  return Object.assign(Lazily, { ready });
}

/** Loads the code of some parts. One that cannot be loaded now is loaded when it is shown. */
export const readyAll = (parts: readonly Pick<LazyPart<never>, "ready">[]): void =>
  void Promise.allSettled(parts.map((part) => part.ready()));
