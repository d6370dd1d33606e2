// Chooses by what lines are grouped: a field that was found, or an expression that is typed.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { path as pathText } from "../../../btql";
import { Button } from "../../../design/Button";
import { Combobox, type ComboOption } from "../../../design/Combobox";
import { Icon } from "../../../design/Icon";
import { withKeys } from "../../../design/Kbd";
import { Popover } from "../../../design/Popover";
import { useOpener } from "../../../design/PopoverLogic";
import { useCommands, useLatest } from "../../../lib/commands";
import { groupFieldsQuery, type Scope } from "../queries";
import style from "./Monitor.module.css";

interface GroupButtonProps {
  readonly scope: Scope;
  readonly onGroup: (group: string) => void;
}

const NONE = "none";
const TYPED = "typed";

function optionsOf(texts: readonly string[], typed: string, group: string): readonly ComboOption[] {
  const wanted = typed.trim();
  const found = texts.filter((text) => text.toLowerCase().includes(wanted.toLowerCase()));
  return [
    ...(group === "" || wanted !== "" ? [] : [{ id: NONE, label: "No groups" }]),
    ...found.map((text) => ({ id: `field ${text}`, label: text, isChosen: text === group })),
    ...(wanted === "" || texts.includes(wanted) ? [] : [{ id: TYPED, label: `Group by ${wanted}` }]),
  ];
}

function Panel({ scope, onGroup }: GroupButtonProps) {
  const [typed, setTyped] = useState("");
  const fields = useQuery(groupFieldsQuery(scope));
  const texts = useMemo(() => {
    const paths = fields.data ?? [];
    return [...new Set([...paths.map((path) => pathText(path)), "span_attributes.name"])].sort();
  }, [fields.data]);
  return (
    <div className={style["panel"]}>
      <Combobox
        label="Group by"
        form="inline"
        value={typed}
        placeholder="A field or an expression"
        isFirstCurrent
        options={optionsOf(texts, typed, scope.group)}
        onValue={setTyped}
        onPick={({ id }) => onGroup(id === NONE ? "" : id === TYPED ? typed.trim() : id.slice("field ".length))}
      />
    </div>
  );
}

export function GroupButton({ scope, onGroup }: GroupButtonProps) {
  const element = useRef<HTMLSpanElement>(null);
  const opener = useOpener();
  const open = useLatest(opener.open);
  useCommands(
    useMemo(() => [{ id: "monitor.group", title: "Group the lines", group: "Monitor", keys: "b", run: () => open() }], [open]),
  );
  const words = scope.group === "" ? "No groups" : `By ${scope.group}`;
  return (
    <>
      <span ref={element}>
        <Button {...opener.opener} look="quiet" aria-label={`Group: ${words}`} title={withKeys("Group the lines", "b")}>
          <span className={style["group"]}>{words}</span>
          <Icon name="down" />
        </Button>
      </span>
      {opener.isOpen && (
        <Popover label="Group by" anchor={element} onClose={opener.close} isBare>
          <Panel
            scope={scope}
            onGroup={(group) => {
              opener.close();
              onGroup(group);
            }}
          />
        </Popover>
      )}
    </>
  );
}
