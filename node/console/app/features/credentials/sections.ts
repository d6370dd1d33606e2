// The sections about credentials, which are loaded together: they share most of their code.
export { KeysSection } from "./parts/Keys";
export { SecretsSection } from "./parts/Secrets";
export { TokensSection } from "./parts/Tokens";
export { VariablesSection } from "./parts/Variables";
