// The request of the cluster's page.
import { queryOptions } from "@tanstack/react-query";
import { askCluster } from "../../api/cluster";

const AGAIN_MS = 5000;
/** After a failure another node may answer soon. */
const AFTER_FAILURE_MS = 2000;

export const clusterQuery = queryOptions({
  queryKey: ["cluster"],
  queryFn: ({ signal }) => askCluster(signal),
  refetchInterval: ({ state }) => (state.error === null ? AGAIN_MS : AFTER_FAILURE_MS),
});
