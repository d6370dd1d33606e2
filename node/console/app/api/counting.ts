// Queries that count over all rows of a list. A few run at once, so that the first counts do not wait for the last.
import { queriesIn, turns } from "./turns";

/** Each such query uses all processors of the server. More of them at once only delay each other. */
const AT_ONCE = 2;

/** Runs a query that counts when its turn comes. */
export const runCount = queriesIn(turns(AT_ONCE));
