// A list of options of which several can be chosen, found by their names.
import { useState, type ReactNode } from "react";
import { Combobox, type ComboOption } from "../../../design/Combobox";
import style from "./Dialogs.module.css";

interface PickerProps {
  readonly label: string;
  readonly options: readonly Omit<ComboOption, "isChosen">[];
  readonly chosen: readonly string[];
  readonly onChosen: (chosen: readonly string[]) => void;
  readonly placeholder: string;
  /** Whether what is typed can be chosen too. */
  readonly isOpen?: boolean;
  readonly whenEmpty: ReactNode;
}

export function Picker({ label, options, chosen, onChosen, placeholder, isOpen = false, whenEmpty }: PickerProps) {
  const [text, setText] = useState("");
  const words = text.trim().toLowerCase();
  const typed = chosen.filter((id) => !options.some((option) => option.id === id)).map((id) => ({ id, label: id }));
  const all: readonly ComboOption[] = [...typed, ...options];
  const found = all.filter((option) => `${option.label} ${option.detail ?? ""}`.toLowerCase().includes(words));
  const isNew = isOpen && words !== "" && !all.some(({ id }) => id === text.trim());
  const shown = isNew ? [...found, { id: text.trim(), label: text.trim(), detail: "as typed" }] : found;
  return (
    <div className={style["picker"]}>
      <Combobox
        form="inline"
        label={label}
        value={text}
        placeholder={placeholder}
        isMultiple
        isFirstCurrent={words !== ""}
        options={shown.map((option) => ({ ...option, isChosen: chosen.includes(option.id) }))}
        onValue={setText}
        onPick={({ id }) => {
          onChosen(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
          if (isNew && id === text.trim()) setText("");
        }}
        whenEmpty={<p className={style["hint"]}>{whenEmpty}</p>}
      />
    </div>
  );
}
