// An editor of code. It lives in a shadow root, because the content policy allows no style sheet in the page itself.
import { useEffect, useLayoutEffect, useRef } from "react";
import style from "./Editor.module.css";
import { startEditor, type StartedEditor } from "./EditorStart";
import type { EditorProps } from "./EditorTypes";

/** Keeps keys that are typed from the shortcuts of the page, which see the host of the editor and not its text. */
function stayInside(event: KeyboardEvent): void {
  if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
}

export function Editor(props: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<StartedEditor | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const { text, marks, hints } = props;
  useLayoutEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    editor.current = startEditor(element, latest.current, () => latest.current);
    element.addEventListener("keydown", stayInside);
    return () => {
      element.removeEventListener("keydown", stayInside);
      editor.current?.stop();
      editor.current = null;
    };
  }, []);
  useLayoutEffect(() => editor.current?.setText(text), [text]);
  useEffect(() => editor.current?.setNotes({ marks, hints }), [marks, hints]);
  return <div ref={host} className={style["editor"]} />;
}
