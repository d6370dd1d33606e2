// The address of the cluster's page: which node is open.
import { pageAddress } from "../../lib/pages";

export interface ClusterUrl {
  /** The id of the open node, or an empty text. */
  readonly node: string;
}

export const readClusterUrl = (query: URLSearchParams): ClusterUrl => ({ node: query.get("node") ?? "" });

export const writeClusterUrl = ({ node }: ClusterUrl): string => pageAddress("cluster", "", "", [], [["node", node, ""]]);
