// The panel of a column: its prompt, which other columns may share, and its own model and parameters.
import { Button, IconButton } from "../../../design/Button";
import { Field } from "../../../design/Field";
import { withKeys } from "../../../design/Kbd";
import { MessageEditor } from "../../../design/MessageEditor";
import type { TemplateFormat } from "../../../design/MessageEditorLogic";
import { ModelParameters, ModelPicker } from "../../../design/ModelPicker";
import { useLinks } from "../../../lib/links";
import type { Fields } from "../../../api/narrow";
import type { PlayPrompt, Variant } from "../../../api/playground";
import type { Desk } from "../useDesk";
import { changedPrompt, changedVariant, promptIn } from "../variants";
import style from "./Panel.module.css";

const formatOf = (data: Fields): TemplateFormat => {
  const format = data["template_format"];
  return format === "nunjucks" || format === "none" ? format : "mustache";
};

/** The tools that the server runs by itself, in words; empty for none. */
function serverTools(data: Fields): string {
  const tools = data["tool_functions"];
  const count = Array.isArray(tools) ? tools.length : 0;
  if (count === 0) return "";
  return count === 1 ? "The server runs one function for this prompt as a tool." : `The server runs ${count} functions for this prompt as tools.`;
}

function Source({ desk, prompt }: { readonly desk: Desk; readonly prompt: PlayPrompt }) {
  const links = useLinks();
  const { organization, project } = desk.place;
  if (prompt.source === null) return null;
  return (
    <p className={style["note"]}>
      From the prompt <a href={links.page("prompts", organization, project, [prompt.source.slug])}>{prompt.source.slug}</a>
    </p>
  );
}

interface PanelProps {
  readonly desk: Desk;
  readonly variant: Variant;
  readonly prompt: PlayPrompt;
}

export function PromptPanel({ desk, variant, prompt }: PanelProps) {
  const { editing, models, titles, change, setOpened } = desk;
  const title = titles.get(variant.id) ?? prompt.name;
  const shared = desk.playground.variants.filter((one) => one.prompt === prompt.id).length - 1;
  const editPrompt = (next: Partial<PlayPrompt>): void => editing.edit((before) => changedPrompt(before, prompt.id, next));
  const asked = promptIn(prompt.data);
  const editAsked = (next: Fields): void => editPrompt({ data: { ...prompt.data, prompt: next } });
  const tools = asked["tools"];
  const note = serverTools(prompt.data);
  return (
    <aside className={style["panel"]} aria-label={`Column ${title}`}>
      <header className={style["head"]}>
        <h2>{title}</h2>
        <Button look="quiet" onClick={() => setOpened({ what: "version", variant: variant.id })}>
          Save as a version
        </Button>
        <IconButton icon="close" label="Close the panel" hint={withKeys("Close the panel", "Escape")} onClick={() => change({ variant: "", row: "" })} />
      </header>
      <div className={style["inside"]}>
        <ModelPicker value={variant.model} models={models} onChange={(model) => editing.edit((before) => changedVariant(before, variant.id, { model }))} />
        <Field label="Name of the prompt" value={prompt.name} autoComplete="off" onChange={(event) => editPrompt({ name: event.currentTarget.value })} />
        <Source desk={desk} prompt={prompt} />
        {shared > 0 && (
          <p className={style["note"]}>{shared === 1 ? "One more column has this prompt and changes with it." : `${shared} more columns have this prompt and change with it.`}</p>
        )}
        <h3>Messages</h3>
        <MessageEditor label="Messages of the prompt" value={asked} format={formatOf(prompt.data)} onChange={editAsked} />
        {note !== "" && <p className={style["note"]}>{note}</p>}
        <h3>Parameters of this column</h3>
        <ModelParameters
          value={variant.params}
          onChange={(params) => editing.edit((before) => changedVariant(before, variant.id, { params }))}
          tools={typeof tools === "string" ? tools : ""}
          onTools={(text) => editAsked({ ...asked, tools: text })}
        />
      </div>
    </aside>
  );
}
