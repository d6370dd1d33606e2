// The step that connects a coding agent.
import { useState } from "react";
import { Code } from "../../../design/Code";
import { connections, type Agent } from "../agents";

export function AgentSteps({ origin }: { readonly origin: string }) {
  const [agent, setAgent] = useState<Agent>("claude");
  return (
    <>
      <p>
        Agents read traces, experiments and prompts over MCP, with the rights of their key.{" "}
        <a href={`${origin}/docs/guide/coding-agents`}>More on coding agents</a>
      </p>
      <Code label="Agent" chosen={agent} onChoose={setAgent} snippets={connections(origin)} />
    </>
  );
}
