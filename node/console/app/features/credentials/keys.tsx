// The section of the settings about API keys.
export { KeysSection as Section } from "./sections";
