// Saves versions, unless somebody else saved one meanwhile: then both are shown.
import { readPromptNamed, savePrompt, type PromptRecord } from "../../api/prompts";
import type { PromptFields } from "../../design/MessageEditorLogic";
import { toast } from "../../design/Toast";
import { refresh, versionQuery } from "./queries";
import { cache } from "../../api/queries";
import type { Desk } from "./useDesk";

/** What a new version is made of: edited content, or an older version. */
export type Content = { readonly data: PromptFields } | { readonly from: PromptRecord };

/** Writes a version after one. Returns the version that somebody else wrote meanwhile, or null after success. */
export async function writeVersion(desk: Desk, base: PromptRecord, content: Content, note: string): Promise<PromptRecord | null> {
  const { place, userId } = desk;
  const present = await readPromptNamed(place.organization, place.projectId, base.slug);
  if (present === null || present.id !== base.id) throw new Error("It was deleted or renamed meanwhile. Nothing is saved.");
  if (present.version !== base.version) return present;
  const saved = await savePrompt(place.organization, present, content, { text: note.trim(), by: userId });
  cache.setQueryData(versionQuery(place, saved.id, saved.version).queryKey, saved);
  if ("data" in content) desk.setEdits(null);
  await refresh(place);
  toast("The version is saved.");
  desk.show({ version: "", compare: "", environment: "" });
  return null;
}
