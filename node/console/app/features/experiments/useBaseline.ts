// Makes an experiment the baseline, and takes that back.
import { useState } from "react";
import { problemOf } from "../../lib/errors";
import type { Experiment } from "../../api/experiments";
import { toast } from "../../design/Toast";
import { useLatest } from "../../lib/commands";
import type { Place } from "./parts/Dialogs";
import { setBaseline } from "./queries";

interface Undo {
  readonly id: string | null;
}

export interface Baseline {
  /** Makes an experiment the baseline; the baseline itself stops being it. */
  readonly toggle: (experiment: Experiment) => void;
  readonly undo: () => void;
  readonly canUndo: boolean;
}

export function useBaseline(place: Place, current: string | null): Baseline {
  const [before, setBefore] = useState<Undo | null>(null);
  const change = async (id: string | null, words: string, back: Undo | null): Promise<void> => {
    try {
      await setBaseline(place.organization, place.projectId, id);
      setBefore(back);
      toast(words, false, back === null ? null : { title: "Undo", run: () => void undo(back) });
    } catch (error) {
      toast(`The baseline was not changed. ${problemOf(error, 0).text}`, true);
    }
  };
  const undo = async (to: Undo): Promise<void> => {
    await change(to.id, "The baseline is what it was before.", null);
  };
  const toggle = useLatest((experiment: Experiment) => {
    const isOff = experiment.id === current;
    const words = isOff ? "There is no baseline any more." : `${experiment.name} is the baseline.`;
    void change(isOff ? null : experiment.id, words, { id: current });
  });
  const undoLatest = useLatest(() => {
    if (before !== null) void undo(before);
  });
  return { toggle, undo: undoLatest, canUndo: before !== null };
}
