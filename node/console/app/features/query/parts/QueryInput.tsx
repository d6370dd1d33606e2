// The editor of the shown query, with its remarks below.
import { useEffect, useMemo, useRef, useState } from "react";
import { Editor } from "../../../design/Editor";
import type { EditorActions, EditorKey } from "../../../design/EditorTypes";
import { completionAt } from "../completion";
import type { Remark } from "../fixes";
import { coloursOf } from "../lexer";
import type { Owner } from "../saved";
import type { Bench } from "../useBench";
import { useHints, useKnown } from "../useKnown";
import { useRemarks } from "../useRemarks";
import { Remarks } from "./Remarks";
import style from "../screen.module.css";

/** Goes through the texts that were run before. Typing starts again at the newest. */
function useHistory(bench: Bench): (by: 1 | -1) => boolean {
  const at = useRef<{ readonly index: number; readonly draft: string; readonly text: string } | null>(null);
  return (by) => {
    const { history } = bench.desk.peek();
    const { text } = bench.tab.peek();
    const going = at.current?.text === text ? at.current : { index: history.length, draft: text, text };
    let index = going.index + by;
    if (by < 0 && history[index] === text) index -= 1;
    if (index < 0 || index > history.length) return true;
    const next = history[index] ?? going.draft;
    at.current = { index, draft: going.draft, text: next };
    bench.change({ text: next });
    return true;
  };
}

interface QueryInputProps {
  readonly bench: Bench;
  readonly owner: Owner;
  readonly onReady: (actions: EditorActions | null) => void;
  readonly onSave: () => void;
}

export function QueryInput({ bench, owner, onReady, onSave }: QueryInputProps) {
  const tab = bench.tab.value;
  const run = bench.runner.of(tab.id).value;
  const known = useKnown(owner);
  const hints = useHints(owner, tab.text);
  const remarks = useRemarks(owner, tab.text, run);
  const marks = useMemo(() => remarks.filter(({ line }) => line > 0), [remarks]);
  const [editor, setEditor] = useState<EditorActions | null>(null);
  const step = useHistory(bench);
  useEffect(() => onReady(editor), [editor, onReady]);
  const keys: readonly EditorKey[] = [
    { key: "Mod-Enter", run: () => (bench.run(), true) },
    { key: "Mod-s", run: () => (onSave(), true) },
    { key: "Escape", run: () => bench.stop() },
    { key: "Alt-ArrowUp", run: () => step(-1) },
    { key: "Alt-ArrowDown", run: () => step(1) },
  ];
  const fix = (text: string): void => {
    bench.change({ text });
    bench.run();
  };
  const goTo = (remark: Remark): void => editor?.select(remark.from, remark.to);
  return (
    <>
      <div className={style["editor"]}>
        <Editor
          label="Query"
          text={tab.text}
          placeholder="select: … | from: project_logs('…')   or   SELECT … FROM …"
          onText={(text) => bench.change({ text })}
          tokensOf={coloursOf}
          marks={marks}
          hints={hints}
          complete={(text, at) => completionAt(known, text, at, bench.tab.peek().syntax)}
          keys={keys}
          onReady={setEditor}
        />
      </div>
      <Remarks remarks={remarks} onPlace={goTo} onFix={fix} />
    </>
  );
}
