// The code that uses what is shown, in several languages.
import { useState } from "react";
import { Code } from "../../../design/Code";
import { filledInput } from "../draft";
import { environmentCode, hasSnippets, snippets, type Language } from "../snippets";
import type { Desk } from "../useDesk";
import style from "./parts.module.css";

const noChoice = (): void => undefined;

export function UsePanel({ desk, input }: { readonly desk: Desk; readonly input: unknown }) {
  const [language, setLanguage] = useState<Language>("python");
  const { newest, state, place, data } = desk;
  const isPrompt = newest.kind === "prompt";
  const { origin } = window.location;
  const source = {
    origin,
    project: place.project,
    slug: newest.slug,
    id: newest.id,
    version: desk.isNewest || state.environment !== "" ? "" : (desk.shown?.version ?? ""),
    environment: state.environment,
    input: isPrompt ? filledInput(data, input) : input,
    isPrompt,
  };
  if (!hasSnippets(source)) return <p className={style["hint"]}>The names have letters that cannot stand in code.</p>;
  return (
    <div className={style["panelBody"]}>
      <Code
        label="Environment"
        snippets={[{ id: "shell", title: "Shell", before: "First, once: put a key of yours in the place of the dots.", code: environmentCode(origin) }]}
        chosen="shell"
        onChoose={noChoice}
      />
      <Code label="Use it" snippets={snippets(source)} chosen={language} onChoose={setLanguage} />
    </div>
  );
}
