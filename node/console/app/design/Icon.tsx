// The icons of the console, drawn as paths of 24 units that take the colour of the text.
//
// The paths are those of Lucide: Copyright (c) 2026 Lucide Icons and Contributors. ISC License: permission to use, copy,
// modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above
// copyright notice and this permission notice appear in all copies. The software is provided "as is" and the author
// disclaims all warranties with regard to this software including all implied warranties of merchantability and fitness.
// In no event shall the author be liable for any special, direct, indirect, or consequential damages or any damages
// whatsoever resulting from loss of use, data or profits, whether in an action of contract, negligence or other tortious
// action, arising out of or in connection with the use or performance of this software.
import style from "./Icon.module.css";

const PATHS = {
  house:
    "M15 21v-8a1 1 0 0 0-1-1h-4a1 1 0 0 0-1 1v8M3 10a2 2 0 0 1 .709-1.528l7-6a2 2 0 0 1 2.582 0l7 6A2 2 0 0 1 21 10v9a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z",
  send: "M14.536 21.686a.5.5 0 0 0 .937-.024l6.5-19a.496.496 0 0 0-.635-.635l-19 6.5a.5.5 0 0 0-.024.937l7.93 3.18a2 2 0 0 1 1.112 1.11zm7.318-19.539-10.94 10.939",
  contrast: "M22 12a10 10 0 1 1-20 0 10 10 0 0 1 20 0M12 18a6 6 0 0 0 0-12v12z",
  keyboard:
    "M10 8h.01M12 12h.01M14 8h.01M16 12h.01M18 8h.01M6 8h.01M7 16h10M8 12h.01M4 4h16a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2z",
  panel: "M5 3h14a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2zM9 3v18",
  down: "m6 9 6 6 6-6",
  up: "m18 15-6-6-6 6",
  right: "m9 18 6-6-6-6",
  check: "M20 6 9 17l-5-5",
  copy: "M10 8h10a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H10a2 2 0 0 1-2-2V10a2 2 0 0 1 2-2zM4 16c-1.1 0-2-.9-2-2V4c0-1.1.9-2 2-2h10c1.1 0 2 .9 2 2",
  close: "M18 6 6 18M6 6l12 12",
  plus: "M5 12h14M12 5v14",
  clock: "M22 12a10 10 0 1 1-20 0 10 10 0 0 1 20 0M12 6v6l4 2",
  ban: "M22 12a10 10 0 1 1-20 0 10 10 0 0 1 20 0M4.9 4.9l14.2 14.2",
  search: "m21 21-4.34-4.34M19 11a8 8 0 1 1-16 0 8 8 0 0 1 16 0",
  person:
    "M22 12a10 10 0 1 1-20 0 10 10 0 0 1 20 0M15 10a3 3 0 1 1-6 0 3 3 0 0 1 6 0M7 20.662V19a2 2 0 0 1 2-2h6a2 2 0 0 1 2 2v1.662",
  more: "M13 12a1 1 0 1 1-2 0 1 1 0 0 1 2 0M20 12a1 1 0 1 1-2 0 1 1 0 0 1 2 0M6 12a1 1 0 1 1-2 0 1 1 0 0 1 2 0",
  warning: "m21.73 18-8-14a2 2 0 0 0-3.48 0l-8 14A2 2 0 0 0 4 21h16a2 2 0 0 0 1.73-3M12 9v4M12 17h.01",
  folder:
    "M20 20a2 2 0 0 0 2-2V8a2 2 0 0 0-2-2h-7.9a2 2 0 0 1-1.69-.9L9.6 3.9A2 2 0 0 0 7.93 3H4a2 2 0 0 0-2 2v13a2 2 0 0 0 2 2Z",
  list: "M3 5h.01M3 12h.01M3 19h.01M8 5h13M8 12h13M8 19h13",
  radio:
    "M16.247 7.761a6 6 0 0 1 0 8.478M19.075 4.933a10 10 0 0 1 0 14.134M4.925 19.067a10 10 0 0 1 0-14.134M7.753 16.239a6 6 0 0 1 0-8.478M14 12a2 2 0 1 1-4 0 2 2 0 0 1 4 0",
  terminal: "M12 19h8M4 17l6-6-6-6",
  flask:
    "M14 2v6a2 2 0 0 0 .245.96l5.51 10.08A2 2 0 0 1 18 22H6a2 2 0 0 1-1.755-2.96l5.51-10.08A2 2 0 0 0 10 8V2M6.453 15h11.094M8.5 2h7",
  filter: "M2 5h20M6 12h12M9 19h6",
  database: "M21 5a9 3 0 1 1-18 0 9 3 0 0 1 18 0M3 5V19A9 3 0 0 0 21 19V5M3 12A9 3 0 0 0 21 12",
  upload: "M12 3v12M17 8l-5-5-5 5M21 15v4a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2v-4",
  sliders: "M10 5H3M12 19H3M14 3v4M16 17v4M21 12h-9M21 19h-5M21 5h-7M8 10v4M8 12H3",
  menu: "M4 5h16M4 12h16M4 19h16",
  play: "M5 5a2 2 0 0 1 3.008-1.728l11.997 6.998a2 2 0 0 1 .003 3.458l-12 7A2 2 0 0 1 5 19z",
  stop: "M7 5h10a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2z",
  download: "M12 15V3M21 15v4a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2v-4M7 10l5 5 5-5",
  history: "M3 12a9 9 0 1 0 9-9 9.75 9.75 0 0 0-6.74 2.74L3 8M3 3v5h5M12 7v5l4 2",
  bookmark: "m19 21-7-4-7 4V5a2 2 0 0 1 2-2h10a2 2 0 0 1 2 2z",
  split: "M16 3h5v5M8 3H3v5M12 22v-8.3a4 4 0 0 0-1.172-2.872L3 3M15 9l6-6",
  chart: "M3 3v16a2 2 0 0 0 2 2h16M19 9l-5 5-4-4-3 3",
  grip: "M10 5a1 1 0 1 1-2 0 1 1 0 0 1 2 0M10 12a1 1 0 1 1-2 0 1 1 0 0 1 2 0M10 19a1 1 0 1 1-2 0 1 1 0 0 1 2 0M16 5a1 1 0 1 1-2 0 1 1 0 0 1 2 0M16 12a1 1 0 1 1-2 0 1 1 0 0 1 2 0M16 19a1 1 0 1 1-2 0 1 1 0 0 1 2 0",
  code: "m16 18 6-6-6-6M8 6l-6 6 6 6",
  message:
    "M22 17a2 2 0 0 1-2 2H6.828a2 2 0 0 0-1.414.586l-2.202 2.202A.71.71 0 0 1 2 21.286V5a2 2 0 0 1 2-2h16a2 2 0 0 1 2 2z",
  braces:
    "M8 3H7a2 2 0 0 0-2 2v5a2 2 0 0 1-2 2 2 2 0 0 1 2 2v5c0 1.1.9 2 2 2h1M16 21h1a2 2 0 0 0 2-2v-5c0-1.1.9-2 2-2a2 2 0 0 1-2-2V5a2 2 0 0 0-2-2h-1",
  grid: "M4 3h5a1 1 0 0 1 1 1v5a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM15 3h5a1 1 0 0 1 1 1v5a1 1 0 0 1-1 1h-5a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM15 14h5a1 1 0 0 1 1 1v5a1 1 0 0 1-1 1h-5a1 1 0 0 1-1-1v-5a1 1 0 0 1 1-1zM4 14h5a1 1 0 0 1 1 1v5a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1v-5a1 1 0 0 1 1-1z",
  checks: "M13 5h8M13 12h8M13 19h8M3 17l2 2 4-4M3 7l2 2 4-4",
  settings: "M14 17H5M19 7h-9M20 17a3 3 0 1 1-6 0 3 3 0 0 1 6 0M10 7a3 3 0 1 1-6 0 3 3 0 0 1 6 0",
  server:
    "M4 2h16a2 2 0 0 1 2 2v4a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2V4a2 2 0 0 1 2-2zM4 14h16a2 2 0 0 1 2 2v4a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2v-4a2 2 0 0 1 2-2zM6 6h.01M6 18h.01",
} as const;

export type IconName = keyof typeof PATHS;

/** An icon of 16 px. It is decoration: what it means stands beside it or in the label of its button. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg className={style["icon"]} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
