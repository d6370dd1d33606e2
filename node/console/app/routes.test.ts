// Tests that addresses and screens are the same thing in two forms.
import fc from "fast-check";
import { expect, test } from "vitest";
import { homeUrl, type HomeState } from "./features/home";
import { SORTS } from "./features/home/url";
import { welcomeUrl, type WelcomeState } from "./features/welcome";
import { LANGUAGES } from "./features/welcome/url";
import { links, placeOf, titleOf } from "./routes";

const text = fc.string({ unit: "grapheme", maxLength: 12 });
/** Names that can stand in a path: a browser removes segments of dots. */
const name = text.filter((value) => value !== "" && value !== "." && value !== "..");

const home: fc.Arbitrary<HomeState> = fc.record({
  organization: fc.oneof(name, fc.constantFrom("welcome", "sign-in", "cluster", "assets", "_design")),
  filter: text,
  sort: fc.constantFrom(...SORTS),
  row: text,
});

const welcome: fc.Arbitrary<WelcomeState> = fc.record({
  organization: text,
  project: text,
  language: fc.constantFrom(...LANGUAGES),
});

test("a home's address means that home", () => {
  fc.assert(
    fc.property(home, (state) => {
      expect(placeOf(homeUrl.write(state))).toEqual({ at: "home", state });
    }),
  );
});

test("a welcome's address means that welcome", () => {
  fc.assert(
    fc.property(welcome, (state) => {
      expect(placeOf(welcomeUrl.write(state))).toEqual({ at: "welcome", state });
    }),
  );
});

test("a browser does not change an address that was written", () => {
  fc.assert(
    fc.property(home, (state) => {
      const url = new URL(homeUrl.write(state), "http://console.invalid");
      expect(url.pathname + url.search).toBe(homeUrl.write(state));
    }),
  );
});

test("parameters in another order, and unknown ones, give the same address", () => {
  const place = placeOf("/app/acme?utm=1&r=a&sort=name&q=b%20c&q=d");
  expect(place.at === "home" && homeUrl.write(place.state)).toBe("/app/acme?q=b%20c&sort=name&r=a");
});

test("defaults are not written", () => {
  expect(links.home("acme")).toBe("/app/acme");
  expect(links.welcome("")).toBe("/app/welcome");
  expect(links.start()).toBe("/app");
  expect(links.signIn("/app")).toBe("/app/sign-in");
  expect(links.signIn("//evil.example")).toBe("/app/sign-in");
  expect(links.signIn("/app/acme?q=a")).toBe("/app/sign-in?next=%2Fapp%2Facme%3Fq%3Da");
});

test.each([
  ["/app", "start"],
  ["/app/", "start"],
  ["/app/acme", "home"],
  ["/app/acme/", "home"],
  ["/app/welcome", "welcome"],
  ["/app/sign-in?next=%2Fapp", "signin"],
  ["/app/cluster", "page"],
  ["/app/acme/p/demo/prompts/greeting", "page"],
  ["/app/acme/settings/keys", "page"],
  ["/app/acme/prompts", "unknown"],
  ["/app/assets", "unknown"],
  ["/app/acme/object?object_type=x", "object"],
  ["/app/acme/p/x/logs", "logs"],
  ["/app/acme/p/x", "project"],
  ["/app/acme/p/x/trace/r?s=a", "trace"],
  ["/app/acme/query?q=select", "query"],
  ["/app/acme/p/x/else", "unknown"],
  ["/app//acme", "unknown"],
  ["/app/%zz", "unknown"],
  ["/other", "unknown"],
])("%s is %s", (href, at) => {
  expect(placeOf(href).at).toBe(at);
});

test("a title names the screen and its object", () => {
  expect(titleOf(placeOf("/app/acme"))).toBe("Home · acme · Assay");
  expect(titleOf(placeOf("/app/welcome?org=acme&project=bot"))).toBe("Send traces · bot · acme · Assay");
});
