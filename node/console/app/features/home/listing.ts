// Which projects the home lists, and in which order.
import type { Project } from "../../api/schema";
import type { Sort } from "./url";

const byName = (a: Project, b: Project): number =>
  a.name.localeCompare(b.name, "en", { numeric: true, sensitivity: "base" }) || (a.id < b.id ? -1 : 1);

/** ISO text of one form sorts as the moments do; projects without rows come last. */
const byNewest = (a: Project, b: Project): number => {
  const [left, right] = [Date.parse(a.newest ?? "") || 0, Date.parse(b.newest ?? "") || 0];
  return right - left;
};

function compare(sort: Sort, a: Project, b: Project): number {
  switch (sort) {
    case "name":
      return byName(a, b);
    case "newest":
      return byNewest(a, b) || byName(a, b);
    case "rows":
      return b.rows - a.rows || byName(a, b);
    case "errors":
      return b.errors - a.errors || byName(a, b);
  }
}

/** The projects that a filter leaves, the pinned ones first. */
export function listed(
  projects: readonly Project[],
  filter: string,
  sort: Sort,
  pinned: ReadonlySet<string> = new Set(),
): readonly Project[] {
  const wanted = filter.trim().toLowerCase();
  const rank = ({ id }: Project): number => (pinned.has(id) ? 0 : 1);
  return projects
    .filter((project) => project.name.toLowerCase().includes(wanted))
    .sort((a, b) => rank(a) - rank(b) || compare(sort, a, b));
}
