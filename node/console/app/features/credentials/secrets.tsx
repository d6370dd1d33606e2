// The section of the settings about AI secrets: the providers of models, for the organization and for its projects.
export { SecretsSection as Section } from "./sections";
