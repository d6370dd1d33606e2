// The route table: which screen an address means, what the screen is called, and how addresses are written.
import { compareDefaults, compareUrl, type CompareState } from "./features/compare/url";
import {
  datasetDefaults,
  datasetsDefaults,
  datasetsUrl,
  datasetUrl,
  type DatasetsState,
  type DatasetState,
} from "./features/datasets/url";
import { experimentsDefaults, experimentsUrl, type ExperimentsState } from "./features/experiments/url";
import { homeDefaults, homeUrl, prefetchHome, type HomeState } from "./features/home";
import { logsDefaults, logsUrl, prefetchLogs, prefetchProject, type LogsState } from "./features/logs";
import { monitorDefaults, monitorUrl, type MonitorState } from "./features/monitor";
import { objectUrl, type ObjectState } from "./features/object";
import { queryDefaults, queryUrl, type QueryState } from "./features/query";
import { signInUrl, type SignInState } from "./features/signin";
import { startUrl } from "./features/start";
import { traceDefaults, traceUrl, type TraceState } from "./features/trace";
import { welcomeDefaults, welcomeUrl, type WelcomeState } from "./features/welcome";
import { isReserved, readAddress, type Address } from "./lib/address";
import type { Links } from "./lib/links";
import { pageAddress, readPage, type PagePlace } from "./lib/pages";

/** The address of a project without a screen: it leads to the project's logs. */
export interface ProjectState {
  readonly organization: string;
  readonly project: string;
}

/** A screen with its state. */
export type Place =
  | { readonly at: "signin"; readonly state: SignInState }
  | { readonly at: "welcome"; readonly state: WelcomeState }
  | { readonly at: "start" }
  | { readonly at: "home"; readonly state: HomeState }
  | { readonly at: "project"; readonly state: ProjectState }
  | { readonly at: "logs"; readonly state: LogsState }
  | { readonly at: "trace"; readonly state: TraceState }
  | { readonly at: "monitor"; readonly state: MonitorState }
  | { readonly at: "object"; readonly state: ObjectState }
  | { readonly at: "query"; readonly state: QueryState }
  | { readonly at: "datasets"; readonly state: DatasetsState }
  | { readonly at: "dataset"; readonly state: DatasetState }
  | { readonly at: "experiments"; readonly state: ExperimentsState }
  | { readonly at: "experiment"; readonly state: CompareState }
  | PagePlace
  | { readonly at: "design" }
  | { readonly at: "unknown"; readonly organization: string };

function readProject({ segments, rawFirst }: Address): Place | null {
  const [organization, p, project, ...rest] = segments;
  if (organization === undefined || project === undefined || isReserved(rawFirst)) return null;
  return p === "p" && rest.length === 0 ? { at: "project", state: { organization, project } } : null;
}

type Reader = (address: Address) => Place | null;

const READERS: readonly Reader[] = [
  (address) => {
    const state = signInUrl.read(address);
    return state && { at: "signin", state };
  },
  (address) => {
    const state = welcomeUrl.read(address);
    return state && { at: "welcome", state };
  },
  (address) => startUrl.read(address) && { at: "start" },
  ({ rawFirst }) => (import.meta.env.DEV && rawFirst === "_design" ? { at: "design" } : null),
  (address) => {
    const state = homeUrl.read(address);
    return state && { at: "home", state };
  },
  readProject,
  (address) => {
    const state = logsUrl.read(address);
    return state && { at: "logs", state };
  },
  (address) => {
    const state = traceUrl.read(address);
    return state && { at: "trace", state };
  },
  (address) => {
    const state = monitorUrl.read(address);
    return state && { at: "monitor", state };
  },
  (address) => {
    const state = objectUrl.read(address);
    return state && { at: "object", state };
  },
  (address) => {
    const state = queryUrl.read(address);
    return state && { at: "query", state };
  },
  (address) => {
    const state = datasetsUrl.read(address);
    return state && { at: "datasets", state };
  },
  (address) => {
    const state = datasetUrl.read(address);
    return state && { at: "dataset", state };
  },
  (address) => {
    const state = experimentsUrl.read(address);
    return state && { at: "experiments", state };
  },
  (address) => {
    const state = compareUrl.read(address);
    return state && { at: "experiment", state };
  },
  readPage,
];

/** The screen that an address means. */
export function placeOf(href: string): Place {
  const address = readAddress(href);
  if (address === null) return { at: "unknown", organization: "" };
  for (const read of READERS) {
    const place = read(address);
    if (place !== null) return place;
  }
  return { at: "unknown", organization: address.segments[0] ?? "" };
}

export const links: Links = {
  start: () => startUrl.write({}),
  signIn: (next) => signInUrl.write({ next, problem: "" }),
  home: (organization, project = "") => homeUrl.write({ ...homeDefaults(organization), row: project }),
  welcome: (organization, project = "") => welcomeUrl.write({ ...welcomeDefaults, organization, project }),
  logs: (organization, project) => logsUrl.write(logsDefaults(organization, project)),
  logsWhere: (organization, project, where) => logsUrl.write({ ...logsDefaults(organization, project), ...where }),
  monitor: (organization, project) => monitorUrl.write(monitorDefaults(organization, project)),
  logRow: (organization, project, oid) => logsUrl.write({ ...logsDefaults(organization, project), oid }),
  object: (organization, type, objectId, row = "") => objectUrl.write({ organization, type, objectId, row }),
  datasets: (organization, project) => datasetsUrl.write(datasetsDefaults(organization, project)),
  dataset: (organization, project, name, version = "") =>
    datasetUrl.write({ ...datasetDefaults(organization, project, name), version }),
  experiments: (organization, project) => experimentsUrl.write(experimentsDefaults(organization, project)),
  experiment: (organization, project, name, compared = [], row = "") =>
    compareUrl.write({ ...compareDefaults(organization, project, name), compared, row }),
  trace: (organization, project, root) => traceUrl.write(traceDefaults(organization, project, root)),
  query: (organization, text = "") => queryUrl.write({ ...queryDefaults(organization), text }),
  page: pageAddress,
};

/** The name of a screen in the breadcrumb. */
export function screenName(place: Place): string {
  switch (place.at) {
    case "signin":
      return "Sign in";
    case "welcome":
      return "Send traces";
    case "start":
      return "Organizations";
    case "home":
      return "Home";
    case "project":
    case "logs":
      return "Logs";
    case "trace":
      return "Trace";
    case "monitor":
      return "Monitor";
    case "object":
      return "Object";
    case "query":
      return "Query";
    case "datasets":
    case "dataset":
      return "Datasets";
    case "experiments":
    case "experiment":
      return "Experiments";
    case "page":
      return place.page.title;
    case "design":
      return "Design";
    case "unknown":
      return "Not found";
  }
}

/** The organization that an address names, or an empty text. */
export function organizationOf(place: Place): string {
  switch (place.at) {
    case "home":
    case "welcome":
    case "project":
    case "logs":
    case "trace":
    case "monitor":
    case "object":
    case "query":
    case "datasets":
    case "dataset":
    case "experiments":
    case "experiment":
      return place.state.organization;
    case "page":
    case "unknown":
      return place.organization;
    default:
      return "";
  }
}

/** The project that an address names, or an empty text. */
export function projectOf(place: Place): string {
  switch (place.at) {
    case "welcome":
    case "project":
    case "logs":
    case "trace":
    case "monitor":
    case "datasets":
    case "dataset":
    case "experiments":
    case "experiment":
      return place.state.project;
    case "page":
      return place.project;
    default:
      return "";
  }
}

/** The title of the page: the screen and the object that it shows. */
export function titleOf(place: Place): string {
  const names = [place.at === "dataset" || place.at === "experiment" ? place.state.name : "", screenName(place), projectOf(place), place.at === "unknown" ? "" : organizationOf(place)];
  return [...names.filter((name) => name !== ""), "Assay"].join(" · ");
}

/** Starts to read what a screen of experiments or datasets needs. Their code is loaded for it, as no other page needs it. */
async function prefetchOfProject(place: Place): Promise<void> {
  switch (place.at) {
    case "datasets":
      return (await import("./features/datasets/queries")).prefetchDatasets(place.state.organization, place.state.project);
    case "dataset": {
      const { organization, project, name } = place.state;
      return (await import("./features/datasets/queries")).prefetchDatasets(organization, project, name);
    }
    case "experiments": {
      const { prefetchExperiments } = await import("./features/experiments/queries");
      return prefetchExperiments(place.state.organization, place.state.project);
    }
    case "experiment": {
      const { prefetchComparison } = await import("./features/compare/queries");
      return prefetchComparison(place.state.organization, place.state.project, place.state);
    }
    default:
      return undefined;
  }
}

/** Starts to read what a screen needs, before its code and the session are there. What fails is read by the screen. */
export function prefetch(place: Place): void {
  if (place.at === "home") prefetchHome(place.state.organization);
  else if (place.at === "logs") prefetchLogs(place.state);
  else if (place.at === "trace") prefetchProject(place.state.organization, place.state.project);
  else void prefetchOfProject(place).catch(() => undefined);
}
