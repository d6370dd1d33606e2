// Decides where a sign-in leads, so that no link can make it lead out of the console.

const FALLBACK = "/app";
const ROUNDS = 8;

/** Decodes until nothing changes. Returns null for text that is not well-formed or is encoded too often. */
function decodeFully(text: string): string | null {
  let decoded = text;
  for (let round = 0; round < ROUNDS; round += 1) {
    let further: string;
    try {
      further = decodeURIComponent(decoded);
    } catch {
      return decoded === text ? null : decoded;
    }
    if (further === decoded) return decoded;
    decoded = further;
  }
  return null;
}

const isSuspicious = (text: string): boolean => text.includes("//") || /[\\\p{Cc}]/u.test(text);

const isInside = (path: string): boolean => path === "/app" || path.startsWith("/app/");

/** Returns the address to go to after signing in: `/app` or below, without `//` and `\` however they are encoded. */
export function safeNext(next: string): string {
  const decoded = decodeFully(next);
  if (decoded === null || isSuspicious(next) || isSuspicious(decoded)) return FALLBACK;
  if (!/^\/app(?:[/?#]|$)/.test(next)) return FALLBACK;
  const origin = "http://console.invalid";
  const url = parseUrl(next, origin);
  const further = parseUrl(decoded, origin);
  if (url === null || url.origin !== origin || !isInside(url.pathname)) return FALLBACK;
  if (further === null || further.origin !== origin || !isInside(further.pathname)) return FALLBACK;
  if (url.pathname.startsWith("/app/sign-in")) return FALLBACK;
  return url.pathname + url.search;
}

function parseUrl(text: string, base: string): URL | null {
  try {
    return new URL(text, base);
  } catch {
    return null;
  }
}
