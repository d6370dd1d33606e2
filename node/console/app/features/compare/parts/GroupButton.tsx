// Chooses the path whose values make groups.
import { useMemo, useRef, useState, type RefObject } from "react";
import { Combobox, type ComboOption } from "../../../design/Combobox";
import { Icon } from "../../../design/Icon";
import { Popover } from "../../../design/Popover";
import { useOpener } from "../../../design/PopoverLogic";
import { GROUP_ID } from "../ids";
import style from "./Toolbar.module.css";

interface GroupProps {
  readonly group: string;
  /** Paths that rows have. */
  readonly paths: readonly string[];
  readonly onGroup: (group: string) => void;
}

interface PanelProps extends GroupProps {
  readonly anchor: RefObject<HTMLElement | null>;
  readonly onClose: () => void;
}

function Panel({ group, paths, onGroup, anchor, onClose }: PanelProps) {
  const [text, setText] = useState("");
  const options = useMemo((): readonly ComboOption[] => {
    const wanted = text.trim();
    const found = paths.filter((path) => path.toLowerCase().includes(wanted.toLowerCase()));
    const own = wanted === "" || paths.includes(wanted) ? [] : [{ id: wanted, label: wanted, detail: "as written" }];
    const none = group === "" || wanted !== "" ? [] : [{ id: "", label: "No groups" }];
    return [...none, ...found.map((path) => ({ id: path, label: path })), ...own];
  }, [text, paths, group]);
  return (
    <Popover label="Group by" anchor={anchor} onClose={onClose} isBare>
      <div className={style["picker"]}>
        <Combobox
          form="inline"
          label="Path to group by"
          placeholder="A path, such as metadata.lang"
          value={text}
          onValue={setText}
          options={options}
          isFirstCurrent
          whenEmpty={<p className={style["none"]}>Type a path such as metadata.lang.</p>}
          onPick={({ id }) => {
            onClose();
            onGroup(id);
          }}
        />
      </div>
    </Popover>
  );
}

export function GroupButton(props: GroupProps) {
  const button = useRef<HTMLButtonElement>(null);
  const panel = useOpener();
  return (
    <>
      <button {...panel.opener} ref={button} id={GROUP_ID} type="button" className={style["tool"]}>
        {props.group === "" ? "Group" : `Group: ${props.group}`} <Icon name="down" />
      </button>
      {panel.isOpen && <Panel {...props} anchor={button} onClose={panel.close} />}
    </>
  );
}
