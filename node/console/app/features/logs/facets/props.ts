// The properties of the facets.
import type { HowToGo } from "../filter/props";
import type { Scope } from "../filter/scope";

export interface FacetsProps {
  readonly scope: Scope;
  readonly onChange: (filter: string, how: HowToGo) => void;
}
