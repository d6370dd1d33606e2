// The filter bar, and the scope that filter, facets and histogram share.
export { FilterBar } from "./FilterBar";
export type { FilterBarProps, HowToGo } from "./props";
export { conditionsOf, countedSource, scopeKey, type Scope } from "./scope";
