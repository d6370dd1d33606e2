// The section of the settings about environment variables: of the organization, of projects, and of functions.
export { VariablesSection as Section } from "./sections";
