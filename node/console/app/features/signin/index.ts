// What of the sign-in other parts of the console use.
export { SignInForm } from "./parts/SignInForm";
export { signInUrl, type SignInState } from "./url";
