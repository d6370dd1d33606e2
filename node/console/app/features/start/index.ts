// What of the way in other parts of the console use.
export { startUrl } from "./url";
