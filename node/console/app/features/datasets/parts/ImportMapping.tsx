// The step of an import that maps columns to fields, with a preview of the rows.
import { useMemo } from "react";
import { isRecord } from "../../../api/narrow";
import { Button } from "../../../design/Button";
import { DialogActions } from "../../../design/Dialog";
import { exactCount } from "../../../lib/numbers";
import { FIELDS, lineOf } from "../cells";
import { DUPLICATES, MODES, type DuplicateMode, type DuplicatesBy } from "../importing";
import { rowOf, TARGETS, type Target } from "../mapping";
import { FORMATS, type Format } from "../records";
import type { Chosen, Import } from "../useImport";
import style from "./Import.module.css";

const TARGET_TITLES: Readonly<Record<Target, string>> = {
  input: "Input",
  expected: "Expected",
  metadata: "Metadata",
  tags: "Tags",
  id: "Id",
  none: "Leave out",
};

const FORMAT_TITLES: Readonly<Record<Format, string>> = { csv: "CSV", tsv: "TSV", jsonl: "JSON lines", json: "JSON" };

const BY_TITLES: Readonly<Record<DuplicatesBy, string>> = {
  none: "Not looked for",
  id: "Rows with the same id",
  input: "Rows with the same input",
};

const MODE_TITLES: Readonly<Record<DuplicateMode, string>> = {
  skip: "Skip them",
  replace: "Replace what is there",
  add: "Add them as new rows",
};

interface SelectProps<Choice extends string> {
  readonly label: string;
  readonly value: Choice;
  readonly choices: readonly Choice[];
  readonly titles: Readonly<Record<Choice, string>>;
  readonly isLabelSpoken?: boolean;
  readonly onChoose: (choice: Choice) => void;
}

function Select<Choice extends string>({ label, value, choices, titles, isLabelSpoken = false, onChoose }: SelectProps<Choice>) {
  return (
    <label className={style["select"]}>
      <span className={isLabelSpoken ? "only-spoken" : undefined}>{label}</span>
      <select
        value={value}
        onChange={(event) => {
          const chosen = choices.find((choice) => choice === event.currentTarget.value);
          if (chosen !== undefined) onChoose(chosen);
        }}
      >
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {titles[choice]}
          </option>
        ))}
      </select>
    </label>
  );
}

interface StepProps {
  readonly state: Import;
  readonly chosen: Chosen;
}

function Columns({ state, chosen }: StepProps) {
  const sample = (column: string): string => {
    const found = chosen.preview.records.find((one) => "fields" in one && isRecord(one.fields) && (one.fields[column] ?? "") !== "");
    return found !== undefined && "fields" in found ? lineOf(found.fields[column]) : "";
  };
  return (
    <table className={style["columns"]}>
      <thead>
        <tr>
          <th scope="col">Column</th>
          <th scope="col">Field</th>
          <th scope="col">Example</th>
        </tr>
      </thead>
      <tbody>
        {chosen.columns.map((column) => (
          <tr key={column}>
            <th scope="row">{column}</th>
            <td>
              <Select
                label={`Field of ${column}`}
                isLabelSpoken
                value={chosen.mapping.get(column) ?? "none"}
                choices={TARGETS}
                titles={TARGET_TITLES}
                onChoose={(target) => state.target(column, target)}
              />
            </td>
            <td className={style["sample"]}>{sample(column)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The rows as they will be, with the lines that cannot be read. */
function PreviewTable({ state, chosen }: StepProps) {
  const { isExact } = state.settings;
  const rows = useMemo(
    () =>
      chosen.preview.records.map((record) =>
        "fault" in record ? record : { line: record.line, row: rowOf(record.fields, chosen.mapping, { isExact }) },
      ),
    [chosen, isExact],
  );
  return (
    <div className={style["preview"]} tabIndex={0} role="region" aria-label="Preview of the rows">
      <table>
        <thead>
          <tr>
            <th scope="col">Line</th>
            {FIELDS.map((field) => (
              <th key={field} scope="col">
                {TARGET_TITLES[field]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((one) => (
            <tr key={one.line}>
              <th scope="row">{one.line}</th>
              {"fault" in one ? (
                <td colSpan={FIELDS.length} className={style["fault"]}>
                  {one.fault}
                </td>
              ) : (
                FIELDS.map((field) => <td key={field}>{lineOf(one.row[field])}</td>)
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** How the file is read, and what is done about duplicates. */
function ReadingSettings({ state, chosen }: StepProps) {
  const { settings, setSettings } = state;
  const isTable = chosen.format === "csv" || chosen.format === "tsv";
  return (
    <div className={style["settings"]}>
      <Select
        label="Format"
        value={chosen.format}
        choices={FORMATS}
        titles={FORMAT_TITLES}
        onChoose={(format) => void state.choose(chosen.file, chosen.name, format)}
      />
      <Select
        label="Duplicates"
        value={settings.by}
        choices={DUPLICATES}
        titles={BY_TITLES}
        onChoose={(by) => setSettings({ ...settings, by })}
      />
      {settings.by !== "none" && (
        <Select
          label="What to do with them"
          value={settings.mode}
          choices={MODES}
          titles={MODE_TITLES}
          onChoose={(mode) => setSettings({ ...settings, mode })}
        />
      )}
      {isTable && (
        <label className={style["check"]}>
          <input
            type="checkbox"
            checked={settings.isExact}
            onChange={(event) => setSettings({ ...settings, isExact: event.currentTarget.checked })}
          />
          Read numbers, true, false and null as such
        </label>
      )}
    </div>
  );
}

export function ImportMapping({ state, chosen, onClose }: StepProps & { readonly onClose: () => void }) {
  const good = chosen.preview.records.filter((one) => "fields" in one).length;
  return (
    <>
      <ReadingSettings state={state} chosen={chosen} />
      {state.fault !== null && (
        <p className={style["fault"]} role="alert">
          {state.fault}
        </p>
      )}
      <Columns state={state} chosen={chosen} />
      <p className={style["note"]}>
        {chosen.preview.hasMore ? `The first ${exactCount(chosen.preview.records.length)} rows of ` : `${exactCount(good)} rows of `}
        {chosen.name}
      </p>
      <PreviewTable state={state} chosen={chosen} />
      <DialogActions>
        <Button onClick={() => state.setPhase("choose")}>Back</Button>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="primary" disabled={good === 0} onClick={() => void state.start()}>
          Import
        </Button>
      </DialogActions>
    </>
  );
}
