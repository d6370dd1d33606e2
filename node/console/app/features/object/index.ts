// What of the addresses of objects other parts of the console use.
export { objectUrl, type ObjectState } from "./url";
