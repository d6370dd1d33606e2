// Programs that send one span with the SDK of their language. The key and the server come from the environment.
import { programQuoted, rubyQuoted } from "../../lib/quoting";

/** The span's attributes where an SDK builds on OpenTelemetry: fields of the row, as JSON. */
const ATTRIBUTES = [
  ["braintrust.span_attributes", '{"type": "llm"}'],
  ["braintrust.input_json", '"What is 2 + 2?"'],
  ["braintrust.output_json", '"4"'],
  ["braintrust.metadata", '{"model": "example"}'],
  ["braintrust.metrics", '{"prompt_tokens": 8, "completion_tokens": 1}'],
] as const;

const attributeLines = (line: (name: string, json: string) => string): string =>
  ATTRIBUTES.map(([name, json]) => line(name, json)).join("\n");

export const python = (project: string): string => `import braintrust

logger = braintrust.init_logger(project=${programQuoted(project)})
with logger.start_span(name="answer", type="llm") as span:
    span.log(
        input="What is 2 + 2?",
        output="4",
        metadata={"model": "example"},
        metrics={"prompt_tokens": 8, "completion_tokens": 1},
    )
logger.flush()`;

export const typescript = (project: string): string => `import { initLogger } from "braintrust";

const logger = initLogger({ projectName: ${programQuoted(project)} });
await logger.traced(
  async (span) =>
    span.log({
      input: "What is 2 + 2?",
      output: "4",
      metadata: { model: "example" },
      metrics: { prompt_tokens: 8, completion_tokens: 1 },
    }),
  { name: "answer", type: "llm" },
);
await logger.flush();`;

export const go = (project: string): string => `package main

import (
	"context"
	"log"

	"github.com/braintrustdata/braintrust-sdk-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
)

func main() {
	ctx := context.Background()
	provider := trace.NewTracerProvider()
	client, err := braintrust.New(provider, braintrust.WithProject(${programQuoted(project)}))
	if err != nil {
		log.Fatal(err)
	}
	_, span := client.Tracer("example").Start(ctx, "answer")
	span.SetAttributes(
${attributeLines((name, json) => `\t\tattribute.String("${name}", \`${json}\`),`)}
	)
	span.End()
	if err := provider.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}`;

export const ruby = (project: string): string => `require "braintrust"

Braintrust.init(default_project: ${rubyQuoted(project)})
tracer = OpenTelemetry.tracer_provider.tracer("example")
tracer.in_span("answer") do |span|
${attributeLines((name, json) => `  span.set_attribute("${name}", '${json}')`)}
end
OpenTelemetry.tracer_provider.shutdown`;

/** What names a project where the SDK sends the name in a header, too. */
export interface Named {
  readonly by: "name" | "id";
  readonly text: string;
}

export const java = ({ by, text }: Named): string => `import dev.braintrust.Braintrust;
import dev.braintrust.config.BraintrustConfig;

public class Answer {
    public static void main(String[] args) {
        var config = BraintrustConfig.builder().${by === "id" ? "defaultProjectId" : "defaultProjectName"}(${programQuoted(text)}).build();
        var tracer = Braintrust.get(config).openTelemetryCreate().getTracer("example");
        var span = tracer.spanBuilder("answer").startSpan();
${attributeLines((name, json) => `        span.setAttribute("${name}", ${programQuoted(json)});`)}
        span.end();
        // The SDK sends the span before the program exits.
    }
}`;

export const csharp = ({ by, text }: Named): string => `using Braintrust.Sdk.Config;
using Braintrust.Sdk.Trace;

var config = BraintrustConfig.Of(("${by === "id" ? "BRAINTRUST_DEFAULT_PROJECT_ID" : "BRAINTRUST_DEFAULT_PROJECT_NAME"}", ${programQuoted(text)}));
var source = Braintrust.Sdk.Braintrust.Get(config).GetActivitySource();
using (var span = source.StartActivity("answer"))
{
${attributeLines((name, json) => `    span?.SetTag("${name}", ${programQuoted(json)});`)}
}
BraintrustTracing.ForceFlush();`;
