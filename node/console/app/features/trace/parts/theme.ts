// What canvases depend on besides their content: the colours of the theme.
import { useEffect, useState } from "react";
import { preferences } from "../../../lib/preferences";

/** A text that changes whenever the colours of the page do. */
export function useTheme(): string {
  const { theme } = preferences.value;
  const [isDark, setDark] = useState(() => window.matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const media = window.matchMedia("(prefers-color-scheme: dark)");
    const follow = (): void => setDark(media.matches);
    follow();
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, []);
  return `${theme} ${isDark}`;
}
