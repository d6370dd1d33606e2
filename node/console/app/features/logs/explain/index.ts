// The explanation of a selection of rows: what they have more or less often than the rest.
export { useExplain, type Explain } from "./useExplain";
