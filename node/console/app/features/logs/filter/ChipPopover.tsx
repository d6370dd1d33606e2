// The panel that makes or changes a condition. It is loaded when it is first opened, or before.
import type { RefObject } from "react";
import { Popover } from "../../../design/Popover";
import { ChipEditor, type ChipEditorProps } from "./ChipEditor";

export interface ChipPopoverProps extends ChipEditorProps {
  readonly label: string;
  readonly anchor: RefObject<HTMLElement | null>;
  readonly onClose: () => void;
}

export function ChipPopover({ label, anchor, onClose, ...editor }: ChipPopoverProps) {
  return (
    <Popover label={label} anchor={anchor} onClose={onClose} isBare>
      <ChipEditor {...editor} />
    </Popover>
  );
}
