// Whether people who use the keyboard see where they are.
import type { Page } from "playwright-core";
import { expect } from "vitest";

/** Checks that the focused element or what is closely around it has an outline or a ring, and that nothing covers it. */
export async function expectFocusSeen(page: Page): Promise<void> {
  const seen = await page.evaluate(() => {
    const focused = document.activeElement;
    if (focused === null || focused === document.body) return "nothing has the focus";
    const around: Element[] = [];
    for (let one: Element | null = focused; one !== null && around.length < 6; one = one.parentElement) around.push(one);
    const isMarked = around.map((one) => getComputedStyle(one)).some(
      // A ring is a shadow without offset and blur; the shadows of overlays have both.
      ({ outlineStyle, boxShadow }) => outlineStyle !== "none" || /\b0px 0px 0px [1-9]/.test(boxShadow),
    );
    const { left, top, width, height } = focused.getBoundingClientRect();
    const over = document.elementFromPoint(left + width / 2, top + height / 2);
    const isCovered = over === null || !(focused.contains(over) || over.contains(focused));
    return isCovered ? "the focus is covered" : isMarked ? "seen" : "the focus has no mark";
  });
  expect(seen).toBe("seen");
}
