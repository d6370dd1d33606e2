// The section of the settings about service tokens and the accounts that they belong to.
export { TokensSection as Section } from "./sections";
