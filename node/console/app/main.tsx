// Starts the console.
import "./design/tokens.css";
import "./design/base.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { createRoot } from "react-dom/client";
import { aboutQuery, cache, sessionQuery } from "./api/queries";
import { App } from "./frame/App";
import { startKeys } from "./lib/commands";
import { LinksProvider } from "./lib/links";
import { startPreferences } from "./lib/preferences";
import { location, startRouter } from "./lib/router";
import { startClock } from "./lib/time";
import { links, placeOf, prefetch } from "./routes";

startPreferences();
startRouter();
startClock();
startKeys();

const place = placeOf(location.peek());
void cache.prefetchQuery(aboutQuery);
if (place.at !== "signin") {
  void cache.prefetchQuery(sessionQuery);
  prefetch(place);
}

const root = document.getElementById("console");
if (root !== null) {
  createRoot(root).render(
    <QueryClientProvider client={cache}>
      <LinksProvider value={links}>
        <App />
      </LinksProvider>
    </QueryClientProvider>,
  );
}
