// What a page made of the texts it shows.
import type { Page } from "playwright-core";

/** Returns the elements of a page that no screen makes, and the attributes that no element has. */
export const madeByTexts = (page: Page): Promise<readonly string[]> =>
  page.evaluate(() => {
    const foreign = "iframe:not([sandbox='']), object, embed, base, form[action], script:not([src^='/app/assets/'])";
    const strange = [...document.querySelectorAll(foreign)].map((element) => element.tagName);
    const fetched = [...document.querySelectorAll("link")].map((link) => link.href);
    const outside = fetched.filter((href) => !href.startsWith(`${location.origin}/app/assets/`));
    const handlers = [...document.querySelectorAll("*")].flatMap((element) =>
      [...element.attributes].filter((attribute) => /^on/i.test(attribute.name)).map((attribute) => attribute.name),
    );
    const links = [...document.querySelectorAll("a[href]")]
      .map((link) => link.getAttribute("href") ?? "")
      .filter((href) => !/^(?:\/app|#|https?:\/\/|mailto:)/.test(href));
    return [...strange, ...outside, ...handlers, ...links];
  });
