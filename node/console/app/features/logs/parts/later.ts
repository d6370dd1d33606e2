// The parts of the list whose code is loaded after the first rows.
import { lazily } from "../../../design/Lazily";

export const BulkBar = lazily(async () => (await import("./BulkBar")).BulkBar);
export const BulkDialog = lazily(async () => (await import("./BulkDialog")).BulkDialog);
export const DisplayForm = lazily(async () => (await import("./DisplayForm")).DisplayForm);
export const Facets = lazily(async () => (await import("../facets")).Facets);
export const Groups = lazily(async () => (await import("./Groups")).Groups);
export const Histogram = lazily(async () => (await import("../histogram")).Histogram);
export const NoRows = lazily(async () => (await import("./NoRows")).NoRows);
export const Panel = lazily(async () => (await import("./Panel")).Panel);
export const ViewDialogs = lazily(async () => (await import("./ViewDialogs")).ViewDialogs);

/** What is loaded while the browser is idle, so that opening it takes no time. */
export const laterParts = [BulkBar, BulkDialog, DisplayForm, Facets, NoRows, Panel, ViewDialogs] as const;
