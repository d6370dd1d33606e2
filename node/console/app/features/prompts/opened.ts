// Which dialog of a page is open.

export type Opened =
  | { readonly what: "none" | "save" | "details" | "delete" }
  | { readonly what: "restore"; readonly version: string }
  /** A version for a new environment. */
  | { readonly what: "environment"; readonly version: string }
  /** A version for an environment; null takes its version away. */
  | { readonly what: "pin"; readonly slug: string; readonly version: string | null };
