// The dialog that makes or changes an own chart: its name, the expression that it measures, and its unit.
import { useState, type FormEvent } from "react";
import { isAbort, problemOf } from "../../../lib/errors";
import { faultOf } from "../../../api/query";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Field } from "../../../design/Field";
import { UNITS, UNIT_NAMES, type Card, type Unit } from "../cards";
import { tryMeasure, type Scope } from "../queries";
import style from "./Monitor.module.css";

type Own = Extract<Card, { readonly kind: "own" }>;

interface ChartDialogProps {
  readonly scope: Scope;
  /** The chart that is changed; null for a new one. */
  readonly before: Own | null;
  /** Whether another chart has a name already. */
  readonly isTaken: (name: string) => boolean;
  readonly onDone: (chart: Own) => void;
  readonly onClose: () => void;
}

interface Faults {
  readonly name: string | null;
  readonly measure: string | null;
}

const NO_FAULTS: Faults = { name: null, measure: null };

function faultsOf(name: string, measure: string, isTaken: (name: string) => boolean): Faults {
  return {
    name: name === "" ? "Enter a name." : isTaken(name) ? "A card has this name already." : null,
    measure: measure === "" ? "Enter an expression." : null,
  };
}

function UnitField({ unit, onUnit }: { readonly unit: Unit; readonly onUnit: (unit: Unit) => void }) {
  return (
    <label className={style["select"]}>
      Unit
      <select value={unit} onChange={(event) => onUnit(UNITS.find((one) => one === event.currentTarget.value) ?? "number")}>
        {UNITS.map((one) => (
          <option key={one} value={one}>
            {UNIT_NAMES[one]}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Keeps what is entered, and tries the expression on the server before it is taken over. */
function useForm({ scope, before, isTaken, onDone, onClose }: ChartDialogProps) {
  const [name, setName] = useState(before?.name ?? "");
  const [measure, setMeasure] = useState(before?.measure ?? "");
  const [unit, setUnit] = useState<Unit>(before?.unit ?? "number");
  const [faults, setFaults] = useState(NO_FAULTS);
  const [isTrying, setTrying] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (isTrying) return;
    const chart: Own = { kind: "own", name: name.trim(), measure: measure.trim(), unit };
    const found = faultsOf(chart.name, chart.measure, isTaken);
    setFaults(found);
    if (found.name !== null || found.measure !== null) return;
    setTrying(true);
    try {
      await tryMeasure(scope, chart.measure, AbortSignal.timeout(20_000));
      onDone(chart);
      onClose();
    } catch (error) {
      const fault = faultOf(error);
      const words = isAbort(error) ? "The server did not answer in 20 seconds." : problemOf(error, 0).text;
      setFaults({ name: null, measure: fault === null ? words : `Column ${fault.column}: ${fault.message}` });
      setTrying(false);
    }
  };
  return { name, setName, measure, setMeasure, unit, setUnit, faults, isTrying, submit };
}

export function ChartDialog(props: ChartDialogProps) {
  const { before, onClose } = props;
  const { name, setName, measure, setMeasure, unit, setUnit, faults, isTrying, submit } = useForm(props);
  return (
    <Dialog title={before === null ? "Add a chart" : `Change ${before.name}`} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate className={style["fields"]}>
        <Field
          label="Name"
          autoComplete="off"
          autoFocus
          value={name}
          fault={faults.name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Field
          label="Measure"
          hint="An expression with an aggregate, such as avg(metrics.duration) or count(error) / count(1)."
          autoComplete="off"
          spellCheck={false}
          value={measure}
          fault={faults.measure}
          onChange={(event) => setMeasure(event.currentTarget.value)}
        />
        <UnitField unit={unit} onUnit={setUnit} />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" aria-disabled={isTrying}>
            {before === null ? "Add" : "Change"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
