// Keeps the desk in step with the address and with what the browser remembers of it.
//
// The address has the query of the shown tab. The other tabs and the history are a person's own arrangement, like the
// theme: they are kept as a preference of this browser, apart for each person and organization. Results never are.
import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "react";
import { MOST_IN_ADDRESS } from "../../lib/address";
import { remember, remembered } from "../../lib/preferences";
import { navigate } from "../../lib/router";
import { arrived, currentTab, readDesk, writeDesk, type Desk, type QueryPart, type QueryTab } from "./tabs";
import { queryUrl, type QueryState } from "./url";

const REST_MS = 250;

const partOf = ({ text, view, syntax, chart, version, tab }: QueryState): QueryPart => ({
  name: "",
  saved: "",
  text,
  link: view,
  syntax,
  chart,
  version,
  tab,
});

function addressOf(organization: string, { text, link, syntax, chart, version, tab }: QueryTab): string {
  const isLong = text.length > MOST_IN_ADDRESS;
  const named = { text: isLong ? "" : text, view: isLong ? link : "" };
  return queryUrl.write({ organization, ...named, syntax, chart, version, tab });
}

/** The desk as a signal. Whoever sets it changes the address and the preference a moment later. */
export function useDesk(state: QueryState, owner: string): Signal<Desk> {
  const name = `query.${owner}`;
  const desk = useMemo(() => signal(arrived(readDesk(remembered(name)), partOf(state))), [name]);
  const written = useRef(queryUrl.write(state));
  const address = queryUrl.write(state);
  useEffect(() => {
    if (address === written.current) return;
    written.current = address;
    desk.value = arrived(desk.peek(), partOf(state));
  }, [address, desk]);
  useEffect(() => {
    let timer = 0;
    const keep = (): void => remember(name, writeDesk(desk.peek()));
    const write = (): void => {
      keep();
      written.current = addressOf(state.organization, currentTab(desk.peek()));
      navigate(written.current, "stay");
    };
    const stop = desk.subscribe(() => {
      window.clearTimeout(timer);
      timer = window.setTimeout(write, REST_MS);
    });
    window.addEventListener("pagehide", keep);
    return () => {
      stop();
      window.clearTimeout(timer);
      window.removeEventListener("pagehide", keep);
      keep();
    };
  }, [desk, name, state.organization]);
  return desk;
}
