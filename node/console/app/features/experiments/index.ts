// What of the list of experiments other parts of the console use.
export { prefetchExperiments } from "./queries";
export { experimentsDefaults, experimentsUrl, type ExperimentsState } from "./url";
