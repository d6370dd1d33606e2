// How the usual coding agents connect to the MCP server of this origin. A key itself never enters the code.
import { shellQuoted } from "../../lib/quoting";

export const AGENTS = ["claude", "codex", "cursor", "vscode"] as const;

export type Agent = (typeof AGENTS)[number];

export interface Connection {
  readonly id: Agent;
  readonly title: string;
  readonly before: string;
  readonly code: string;
}

const json = (value: unknown): string => JSON.stringify(value, null, 2);

export function connections(origin: string): readonly Connection[] {
  const url = `${origin}/mcp`;
  return [
    {
      id: "claude",
      title: "Claude Code",
      before: "Run this where the variables of step 2 are set.",
      code: `claude mcp add --transport http assay ${shellQuoted(url)} --header "Authorization: Bearer $BRAINTRUST_API_KEY"`,
    },
    {
      id: "codex",
      title: "Codex",
      before: "Run this where the variables of step 2 are set.",
      code: `codex mcp add assay --url ${shellQuoted(url)} --bearer-token-env-var BRAINTRUST_API_KEY`,
    },
    {
      id: "cursor",
      title: "Cursor",
      before: "Add this to ~/.cursor/mcp.json.",
      code: json({ mcpServers: { assay: { url, headers: { Authorization: "Bearer ${env:BRAINTRUST_API_KEY}" } } } }),
    },
    {
      id: "vscode",
      title: "VS Code",
      before: "Add this to .vscode/mcp.json. The editor asks for the key once.",
      code: json({
        inputs: [{ type: "promptString", id: "assay-key", description: "API key of Assay", password: true }],
        servers: { assay: { type: "http", url, headers: { Authorization: "Bearer ${input:assay-key}" } } },
      }),
    },
  ];
}
