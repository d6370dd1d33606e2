// The facets: fields with the counts of their values.
export { Facets } from "./Facets";
export type { FacetsProps } from "./props";
