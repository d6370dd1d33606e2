// The parts of an open playground that are loaded when they are first shown.
import { lazily } from "../../../design/Lazily";

export const Dialogs = lazily(async () => (await import("./Dialogs")).Dialogs);
export const PromptPanel = lazily(async () => (await import("./PromptPanel")).PromptPanel);
