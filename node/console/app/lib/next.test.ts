// Tests that a sign-in leads nowhere but into the console.
import fc from "fast-check";
import { expect, test } from "vitest";
import { safeNext } from "./next";

test.each([
  "/app",
  "/app/acme",
  "/app/acme?q=a&r=b",
  "/app/welcome?project=support%20bot",
  "/app/100%25",
  "/app/acme/p/x/logs?oid=1",
])("%s is kept", (next) => {
  expect(safeNext(next)).toBe(next);
});

const HOSTILE = [
  "",
  "/",
  "app",
  "//evil.example",
  "///evil.example",
  "/\\evil.example",
  "\\\\evil.example",
  "https://evil.example",
  "https://evil.example/app",
  "javascript:alert(1)",
  "data:text/html,x",
  "/app//evil.example",
  "/app/%2F%2Fevil.example",
  "/app/%252F%252Fevil.example",
  "/app/%25252F%25252Fevil.example",
  "/app\\evil.example",
  "/app/%5Cevil.example",
  "/app/%255Cevil.example",
  "/app@evil.example",
  "/app.evil.example",
  "/application",
  "/App/acme",
  "/app/../v1/project",
  "/app/%2e%2e/v1/project",
  "/app/%252e%252e/v1/project",
  "/app/./../../x",
  " /app",
  "\t/app",
  "/app\n/x",
  "/app/\u0000",
  "/app/%00",
  "/app/%0d%0aset-cookie:x",
  "/app/%",
  "/app/%zz",
  "/app?next=//evil.example",
  "/app?next=%2F%2Fevil.example",
  "/app/sign-in",
  "/app/sign-in?next=%2Fapp",
  "//app",
  "/%61pp",
  "http:/app",
  "/app:80//x",
];

test.each(HOSTILE)("%j leads to the start", (next) => {
  expect(safeNext(next)).toBe("/app");
});

const part = fc.constantFrom("/app", "/", "\\", "%2f", "%5C", "%25", "..", "%2e", "evil.example", ":", "@", "?", "#", "a", "\n");

test("no mixture of parts leads out of the console", () => {
  fc.assert(
    fc.property(fc.array(part, { maxLength: 9 }), (parts) => {
      const next = safeNext(parts.join(""));
      const url = new URL(next, "http://console.invalid");
      expect(url.origin).toBe("http://console.invalid");
      expect(url.pathname === "/app" || url.pathname.startsWith("/app/")).toBe(true);
      expect(next).not.toMatch(/\/\/|\\/);
    }),
  );
});

test("a safe address is safe again", () => {
  fc.assert(fc.property(fc.string(), (text) => safeNext(safeNext(`/app/${text}`)) === safeNext(`/app/${text}`)));
});
