// A function that is not edited here: what it is, its code, and the forms of its arguments and its result.
import type { PromptRecord } from "../../../api/prompts";
import { Code } from "../../../design/Code";
import { isFields, type PromptFields } from "../../../design/MessageEditorLogic";
import { printJson } from "../../../lib/json";
import { thresholdOf } from "../draft";
import { runtimeOf, typeInWords } from "../listing";
import style from "./parts.module.css";

const noChoice = (): void => undefined;

function Text({ title, before, text }: { readonly title: string; readonly before: string; readonly text: string }) {
  return <Code label={title} snippets={[{ id: "text", title, before, code: text }]} chosen="text" onChoose={noChoice} />;
}

const fieldsIn = (fields: PromptFields, key: string): PromptFields => {
  const value = fields[key];
  return isFields(value) ? value : {};
};

/** The source of a function: what it was saved as, or what its bundle shows of itself. */
function sourceOf(data: PromptFields): { readonly title: string; readonly before: string; readonly text: string } | null {
  if (typeof data["code"] === "string") return { title: "Code", before: "The function must be named “handler”.", text: data["code"] };
  const preview = data["preview"];
  if (typeof preview !== "string" || preview === "") return null;
  return { title: "Preview of the bundle", before: "The bundle was pushed from code, and is changed there.", text: preview };
}

export function FunctionView({ record }: { readonly record: PromptRecord }) {
  const data = fieldsIn(record.code, "data");
  const source = sourceOf(data);
  const schema = fieldsIn(record.whole, "function_schema");
  const threshold = thresholdOf(record);
  const { type, ...settings } = record.code;
  const facts: readonly (readonly [string, string])[] = [
    ["Type", typeInWords(record)],
    ["Kind", String(type ?? "")],
    ["Runs on", runtimeOf(record)],
    ["Bundle", typeof data["bundle_id"] === "string" ? data["bundle_id"] : ""],
    ["Passes from", threshold === null ? "" : String(threshold)],
    ["Description", record.description],
  ];
  return (
    <div className={style["form"]}>
      <dl className={style["facts"]}>
        {facts.filter(([, value]) => value !== "").map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {source !== null && <Text {...source} />}
      {["parameters", "returns"].map((key) =>
        schema[key] == null ? null : (
          <Text key={key} title={key === "parameters" ? "Arguments" : "Result"} before="A JSON Schema." text={printJson(schema[key])} />
        ),
      )}
      {source === null && Object.keys(settings).length > 0 && (
        <Text title="Settings" before="What runs, as it was saved." text={printJson(settings)} />
      )}
    </div>
  );
}
