// What of the page that shows how to send traces other parts of the console use.
export { welcomeDefaults, welcomeUrl, type WelcomeState } from "./url";
