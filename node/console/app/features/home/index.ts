// What of the home screen other parts of the console use.
export { prefetchHome } from "./queries";
export { homeDefaults, homeUrl, type HomeState } from "./url";
