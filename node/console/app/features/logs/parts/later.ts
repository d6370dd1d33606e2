// The parts of the list whose code is loaded after the first rows.
import { lazily } from "../../../design/Lazily";

export const Bulk = lazily(async () => (await import("./Bulk")).Bulk);
export const BulkDialog = lazily(async () => (await import("./BulkDialog")).BulkDialog);
export const DisplayForm = lazily(async () => (await import("./DisplayForm")).DisplayForm);
export const Facets = lazily(async () => (await import("../facets")).Facets);
export const Groups = lazily(async () => (await import("./Groups")).Groups);
export const Histogram = lazily(async () => (await import("../histogram")).Histogram);
export const Jobs = lazily(async () => (await import("./Jobs")).Jobs);
export const NoRows = lazily(async () => (await import("./NoRows")).NoRows);
export const Panel = lazily(async () => (await import("./Panel")).Panel);
export const Resolve = lazily(async () => (await import("./Resolve")).Resolve);
export const VersionControl = lazily(async () => (await import("../../../design/VersionControlParts")).VersionControlParts);
export const ViewDialogs = lazily(async () => (await import("./ViewDialogs")).ViewDialogs);

/** What is loaded while the browser is idle, so that opening it takes no time. */
export const laterParts = [BulkDialog, DisplayForm, Facets, NoRows, Panel, ViewDialogs] as const;
