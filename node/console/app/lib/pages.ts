// The pages whose addresses are read by their own code, when it is loaded: no other page carries it.
import { isReserved, organizationAddress, screenAddress, type Address, type Parameter } from "./address";

/** The identifiers of pages, which are also the names of the parts that a server serves. */
export type PageId = "prompts" | "functions" | "playgrounds" | "review" | "settings" | "cluster";

interface PageRoute {
  readonly id: PageId;
  readonly title: string;
  /** The keys that lead to the page; empty for none. */
  readonly keys: string;
  /** What the page is about, which stands before its word in the address. */
  readonly within: "project" | "organization" | "installation";
}

export const PAGES: readonly PageRoute[] = [
  { id: "prompts", title: "Prompts", keys: "g p", within: "project" },
  { id: "functions", title: "Functions", keys: "", within: "project" },
  { id: "playgrounds", title: "Playgrounds", keys: "g f", within: "project" },
  { id: "review", title: "Review", keys: "g r", within: "project" },
  { id: "settings", title: "Settings", keys: "g s", within: "organization" },
  { id: "cluster", title: "Cluster", keys: "", within: "installation" },
];

/** A page with its address. */
export interface PagePlace {
  readonly at: "page";
  readonly page: PageRoute;
  /** The organization that the address names, or an empty text. */
  readonly organization: string;
  /** The project that the address names, or an empty text. */
  readonly project: string;
  /** The decoded segments after the page's word. */
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
}

const pageOf = (word: string | undefined, within: PageRoute["within"]): PageRoute | undefined =>
  PAGES.find((page) => page.id === word && page.within === within);

/** Reads the address of a page, or returns null if it is none of them. */
export function readPage({ segments, rawFirst, query }: Address): PagePlace | null {
  const [first = "", second, third = "", fourth] = segments;
  if (isReserved(rawFirst)) {
    const page = pageOf(first, "installation");
    return page === undefined ? null : { at: "page", page, organization: "", project: "", rest: segments.slice(1), query };
  }
  if (second === "p") {
    const page = pageOf(fourth, "project");
    return page === undefined
      ? null
      : { at: "page", page, organization: first, project: third, rest: segments.slice(4), query };
  }
  const page = pageOf(second, "organization");
  return page === undefined ? null : { at: "page", page, organization: first, project: "", rest: segments.slice(2), query };
}

/** Writes the address of a page. */
export function pageAddress(
  id: PageId,
  organization: string,
  project: string,
  rest: readonly string[] = [],
  parameters: readonly Parameter[] = [],
): string {
  const within = PAGES.find((page) => page.id === id)?.within ?? "organization";
  if (within === "installation") return screenAddress([id, ...rest], parameters);
  return organizationAddress(organization, [...(within === "project" ? ["p", project] : []), id, ...rest], parameters);
}
