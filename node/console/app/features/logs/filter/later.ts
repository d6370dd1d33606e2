// The parts of the filter whose code is loaded later.
import { lazily } from "../../../design/Lazily";

export const ChipPopover = lazily(async () => (await import("./ChipPopover")).ChipPopover);
export const ExpressionLine = lazily(async () => (await import("./ExpressionLine")).ExpressionLine);

export const laterParts = [ChipPopover, ExpressionLine] as const;
