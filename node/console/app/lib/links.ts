// The addresses that screens link to. The route table writes them, so that screens need not know each other.
import { createContext, useContext } from "react";
import type { Parameter } from "./address";
import type { PageId } from "./pages";

/** Which logs are shown. */
export interface LogsWhere {
  /** A range of time, in the form of `lib/range`. */
  readonly range: string;
  readonly filter: string;
  readonly shape: "traces" | "spans";
}

export interface Links {
  start(): string;
  signIn(next: string): string;
  home(organization: string, project?: string): string;
  welcome(organization: string, project?: string): string;
  logs(organization: string, project: string): string;
  /** The logs within a range that fulfil an expression. */
  logsWhere(organization: string, project: string, where: LogsWhere): string;
  monitor(organization: string, project: string): string;
  /** A trace on a page of its own, by its root span. */
  trace(organization: string, project: string, root: string): string;
  query(organization: string, text?: string): string;
  /** The row of a project's logs that has an id. */
  logRow(organization: string, project: string, id: string): string;
  /** An object by its type and id, or a row in it. The address leads on to the object's page. */
  object(organization: string, type: string, objectId: string, row?: string): string;
  datasets(organization: string, project: string): string;
  dataset(organization: string, project: string, name: string, version?: string): string;
  experiments(organization: string, project: string): string;
  /** An experiment, compared with others, of which the first is the base; with a row, that row is open. */
  experiment(organization: string, project: string, name: string, compared?: readonly string[], row?: string): string;
  /** A page that reads its own address: what follows its word, and its parameters. */
  page(
    id: PageId,
    organization: string,
    project: string,
    rest?: readonly string[],
    parameters?: readonly Parameter[],
  ): string;
}

const Context = createContext<Links | null>(null);

export const LinksProvider = Context.Provider;

export function useLinks(): Links {
  const links = useContext(Context);
  if (links === null) throw new Error("A screen was shown outside the page's frame.");
  return links;
}
