import{t as e}from"./Code-MmOsZTE3.js";import{$t as t,J as n,P as r,S as i,_n as a,c as o,dn as s,et as c,in as l,it as u,l as d,n as f,nn as p,o as ee,on as m,s as h,tn as g,vn as te,zn as ne}from"./shell-BmbjPjPK.js";import{a as _,i as re,n as v,r as y,t as b}from"./quoting-bt3RB7aU.js";import{L as x,M as S,O as C,V as w,l as ie,u as T}from"./libraries-V41Np9Ge.js";import{J as ae,q as oe,z as se}from"./filter-kCU59yV-.js";var E=e=>Date.parse(e.newest??``)||0;function D(e){return e.filter(e=>e.newest!==null).reduce((e,t)=>e===null||E(t)>E(e)?t:e,null)}function O(e,t){let n=D(e);if(n===null)return{kind:`waiting`};if(t===``)return{kind:`here`,project:n};let r=e.find(e=>e.name===t);return r!==void 0&&r.newest!==null?{kind:`here`,project:r}:{kind:`elsewhere`,project:n}}var k=e=>JSON.stringify(e,null,2);function A(e){let t=`${e}/mcp`;return[{id:`claude`,title:`Claude Code`,before:`Run this where the variables of step 2 are set.`,code:`claude mcp add --transport http assay ${_(t)} --header "Authorization: Bearer $BRAINTRUST_API_KEY"`},{id:`codex`,title:`Codex`,before:`Run this where the variables of step 2 are set.`,code:`codex mcp add assay --url ${_(t)} --bearer-token-env-var BRAINTRUST_API_KEY`},{id:`cursor`,title:`Cursor`,before:`Add this to ~/.cursor/mcp.json.`,code:k({mcpServers:{assay:{url:t,headers:{Authorization:"Bearer ${env:BRAINTRUST_API_KEY}"}}}})},{id:`vscode`,title:`VS Code`,before:`Add this to .vscode/mcp.json. The editor asks for the key once.`,code:k({inputs:[{type:`promptString`,id:`assay-key`,description:`API key of Assay`,password:!0}],servers:{assay:{type:`http`,url:t,headers:{Authorization:"Bearer ${input:assay-key}"}}}})}]}function j({origin:t}){let[n,r]=x(`claude`);return C(w,{children:[C(`p`,{children:[`Agents read traces, experiments and prompts over MCP, with the rights of their key.`,` `,C(`a`,{href:`${t}/docs/guide/coding-agents`,children:`More on coding agents`})]}),C(e,{label:`Agent`,chosen:n,onChoose:r,snippets:A(t)})]})}var M=700,N=700,P=async(e,t)=>a(await te(`POST`,`/v1/api_key`,{organization:e,body:{name:t}})),F=(e,t)=>ie({queryKey:[`newest trace`,e,t],queryFn:async({signal:n})=>{let r={select:se(`root_span_id`),from:ae(`project_logs`,t,`summary`),limit:1},i=(await oe(e,r,{signal:n})).rows[0]?.root_span_id;return typeof i==`string`?i:null},staleTime:0});function I(e,t){let n=T({...m,staleTime:0,refetchInterval:e=>e.state.data?.hasRows!==!0&&M}).data?.hasRows===!0,r=T({...s(e),staleTime:0,refetchInterval:e=>{let r=O(e.state.data?.projects??[],t).kind===`here`;return n&&!r?N:!1}}),{refetch:i}=r;S(()=>{n&&i()},[n,i]);let a=r.data!==void 0||r.isError;return{projects:r.data,arrival:a?O(r.data?.projects??[],t):null}}var L={line:`line_wOiv`,here:`here_wOiv`};function R({project:e}){let t=o(e.newest),n=Math.max(h.value,t?.getTime()??0);return C(`span`,{title:ee(t),children:d(t,n,r.value.zone)})}function z({organization:e,project:t,isNew:n}){let r=i(),a=T(F(e,t.id)).data??null,o=n?`primary`:`plain`;return a===null?C(p,{look:o,href:r.logs(e,t.name),children:`Open the logs`}):C(p,{look:o,href:r.trace(e,t.name,a),children:`Open the trace`})}function B({arrival:e,organization:t,project:n}){return C(`section`,{className:L.line,"aria-label":`Traces that have arrived`,role:`status`,children:e===null?C(f,{lines:[[24],[40]]}):e.kind===`waiting`?C(w,{children:[C(`h2`,{children:`Waiting for the first trace`}),C(`p`,{children:`Run the code of step 3. This page looks every 2 seconds and shows the trace when it is there.`})]}):C(w,{children:[C(`h2`,{className:e.kind===`here`?L.here:void 0,children:[e.kind===`here`&&C(l,{name:`check`}),e.kind===`here`?`A trace has arrived`:`Waiting for a trace in ${n}`]}),C(`p`,{children:[`The newest is in `,C(`strong`,{children:e.project.name}),`, `,C(R,{project:e.project}),`.`]}),C(z,{organization:t,project:e.project,isNew:e.kind===`here`})]})})}var V={form:`form_El1F`,made:`made_El1F`,key:`key_El1F`};function H({organization:e}){let[n,r]=x(null),[i,a]=x(`first-trace`),[o,s]=x(null),[c,l]=x(!1),d=async t=>{if(t.preventDefault(),!c){if(i.trim()===``)return s(`Enter a name first.`);s(null),l(!0);try{r(await P(e,i.trim()))}catch(e){s(ne(e,0).text)}finally{l(!1)}}};return n===null?C(`form`,{className:V.form,onSubmit:e=>void d(e),noValidate:!0,children:[C(u,{label:`Name of the key`,name:`key-name`,autoComplete:`off`,value:i,onChange:e=>a(e.currentTarget.value),fault:o}),C(g,{type:`submit`,"aria-disabled":c,children:`Make a key`})]}):C(`div`,{className:V.made,role:`status`,children:[C(`p`,{children:[`This is the key “`,n.name,`”. It is shown only now: copy it before you leave this page.`]}),C(`p`,{className:V.key,children:[C(`code`,{children:n.key}),C(t,{text:n.key,what:`the key`,title:`Copy`})]})]})}var U={screen:`screen_wWbF`,columns:`columns_wWbF`,steps:`steps_wWbF`,step:`step_wWbF`,project:`project_wWbF`,aside:`aside_wWbF`},W=[[`braintrust.span_attributes`,`{"type": "llm"}`],[`braintrust.input_json`,`"What is 2 + 2?"`],[`braintrust.output_json`,`"4"`],[`braintrust.metadata`,`{"model": "example"}`],[`braintrust.metrics`,`{"prompt_tokens": 8, "completion_tokens": 1}`]],G=e=>W.map(([t,n])=>e(t,n)).join(`
`),K=e=>`import braintrust

logger = braintrust.init_logger(project=${y(e)})
with logger.start_span(name="answer", type="llm") as span:
    span.log(
        input="What is 2 + 2?",
        output="4",
        metadata={"model": "example"},
        metrics={"prompt_tokens": 8, "completion_tokens": 1},
    )
logger.flush()`,ce=e=>`import { initLogger } from "braintrust";

const logger = initLogger({ projectName: ${y(e)} });
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
await logger.flush();`,le=e=>`package main

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
	client, err := braintrust.New(provider, braintrust.WithProject(${y(e)}))
	if err != nil {
		log.Fatal(err)
	}
	_, span := client.Tracer("example").Start(ctx, "answer")
	span.SetAttributes(
${G((e,t)=>`\t\tattribute.String("${e}", \`${t}\`),`)}
	)
	span.End()
	if err := provider.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}`,ue=e=>`require "braintrust"

Braintrust.init(default_project: ${re(e)})
tracer = OpenTelemetry.tracer_provider.tracer("example")
tracer.in_span("answer") do |span|
${G((e,t)=>`  span.set_attribute("${e}", '${t}')`)}
end
OpenTelemetry.tracer_provider.shutdown`,de=({by:e,text:t})=>`import dev.braintrust.Braintrust;
import dev.braintrust.config.BraintrustConfig;

public class Answer {
    public static void main(String[] args) {
        var config = BraintrustConfig.builder().${e===`id`?`defaultProjectId`:`defaultProjectName`}(${y(t)}).build();
        var tracer = Braintrust.get(config).openTelemetryCreate().getTracer("example");
        var span = tracer.spanBuilder("answer").startSpan();
${G((e,t)=>`        span.setAttribute("${e}", ${y(t)});`)}
        span.end();
        // The SDK sends the span before the program exits.
    }
}`,fe=({by:e,text:t})=>`using Braintrust.Sdk.Config;
using Braintrust.Sdk.Trace;

var config = BraintrustConfig.Of(("${e===`id`?`BRAINTRUST_DEFAULT_PROJECT_ID`:`BRAINTRUST_DEFAULT_PROJECT_NAME`}", ${y(t)}));
var source = Braintrust.Sdk.Braintrust.Get(config).GetActivitySource();
using (var span = source.StartActivity("answer"))
{
${G((e,t)=>`    span?.SetTag("${e}", ${y(t)});`)}
}
BraintrustTracing.ForceFlush();`,pe=`dev.braintrust:braintrust-sdk-java:0.3.13`,q=4317,J=e=>/^[ -~]*$/.test(e),Y=({name:e,id:t})=>t===null||J(e)?{by:`name`,text:e}:{by:`id`,text:t},X=({name:e,id:t})=>t===null&&!J(e)?` Headers hold only ASCII here, so make this project first: the code then names it by its id.`:``;function Z(e){let{by:t,text:n}=Y(e);return`project_${t}:${n}`}var me=`sk-...`,he=e=>[`export BRAINTRUST_API_KEY=${me}`,`export BRAINTRUST_API_URL=${_(e)} BRAINTRUST_APP_URL=${_(e)}`].join(`
`),Q=(e,t,n)=>`export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=${e}
export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=${_(t)}
export OTEL_EXPORTER_OTLP_TRACES_HEADERS="authorization=Bearer%20$BRAINTRUST_API_KEY,x-bt-parent=${v(n)}"`;function ge(e){let{protocol:t,hostname:n}=new URL(e);return`${t}//${n}:${q}`}var $=(e,t)=>`random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \\n'; }
now=$(date +%s)
curl -s ${_(`${e}/otel/v1/traces`)} \\
  -H "Authorization: Bearer $BRAINTRUST_API_KEY" -H 'Content-Type: application/json' \\
  -H ${_(`x-bt-parent: ${t}`)} -d @- <<EOF
{"resourceSpans": [{"scopeSpans": [{"spans": [{
  "traceId": "$(random 16)", "spanId": "$(random 8)", "name": "answer",
  "startTimeUnixNano": "\${now}000000000", "endTimeUnixNano": "\${now}840000000",
  "attributes": [
    {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
    {"key": "gen_ai.request.model", "value": {"stringValue": "example"}},
    {"key": "gen_ai.prompt", "value": {"stringValue": "What is 2 + 2?"}},
    {"key": "gen_ai.completion", "value": {"stringValue": "4"}},
    {"key": "gen_ai.usage.input_tokens", "value": {"intValue": 8}},
    {"key": "gen_ai.usage.output_tokens", "value": {"intValue": 1}}]}]}]}]}
EOF`,_e=e=>[{id:`python`,title:`Python`,before:`Install the SDK with “pip install braintrust”, then run this file.`,code:K(e.name)},{id:`typescript`,title:`TypeScript`,before:`Install the SDK with “npm install braintrust”. Node.js runs this file as trace.mjs without a compiler.`,code:ce(e.name)},{id:`go`,title:`Go`,before:`Make a module with “go mod init answer” and install the SDK with “go get github.com/braintrustdata/braintrust-sdk-go”. Then run this file as main.go with “go run main.go”.`,code:le(e.name)},{id:`ruby`,title:`Ruby`,before:`Install the SDK with “gem install braintrust”, then run this file. It needs Ruby 3.2 or later.`,code:ue(e.name)},{id:`java`,title:`Java`,before:`Add ${pe} to the dependencies of a build with Gradle or Maven, then run this class. It needs Java 17 or later.${X(e)}`,code:de(Y(e))},{id:`csharp`,title:`C#`,before:`Make a project with “dotnet new console” and install the SDK with “dotnet add package Braintrust.Sdk”. Then put this code into its Program.cs and start it with “dotnet run”. It needs .NET 8 or later.${X(e)}`,code:fe(Y(e))}],ve=(e,t)=>[{id:`otlp`,title:`OTLP/HTTP`,before:`Any OpenTelemetry SDK that starts with these variables sends its spans here.${X(t)}`,code:Q(`http/protobuf`,`${e}/otel/v1/traces`,Z(t))},{id:`grpc`,title:`OTLP/gRPC`,before:`These variables send the spans of any OpenTelemetry SDK over gRPC. The address is that of the setting http.otlp_listen: port ${q} of this host, unless your operator has set another.${X(t)}`,code:Q(`grpc`,ge(e),Z(t))},{id:`curl`,title:`cURL`,before:`This sends one span in the JSON form of OTLP. It needs no SDK.`,code:$(e,Z(t))}],ye=(e,t)=>[..._e(t),...ve(e,t)],be=`quickstart`;function xe({origin:t}){return C(e,{label:`Setting`,chosen:`shell`,onChoose:()=>void 0,snippets:[{id:`shell`,title:`Shell`,before:`Put your key in the place of the dots.`,code:he(t)}]})}function Se({state:t,organization:r}){let{projects:i,arrival:a}=I(r.name,t.project),o=D(i?.projects??[])?.name??i?.projects[0]?.name??be,s=b(t.project)||t.project===``,l=s&&t.project!==``?t.project:o,d=i?.projects.find(e=>e.name===l)?.id??null,f=window.location.origin,p=e=>n(c.write({...t,...e}),`replace`);return C(`div`,{className:U.screen,children:[C(`h1`,{tabIndex:-1,children:`Send traces`}),C(`div`,{className:U.columns,children:[C(`ol`,{className:U.steps,children:[C(`li`,{className:U.step,children:[C(`h2`,{children:`1. Make a key`}),C(H,{organization:r.name},r.id)]}),C(`li`,{className:U.step,children:[C(`h2`,{children:`2. Set the key and the address`}),C(xe,{origin:f})]}),C(`li`,{className:U.step,children:[C(`h2`,{children:`3. Send a trace`}),C(`div`,{className:U.project,children:C(u,{label:`Project`,name:`project`,autoComplete:`off`,placeholder:o,value:t.project,onChange:e=>p({project:e.currentTarget.value}),hint:`A project that does not exist yet is made by its first trace.`,fault:s?null:`This name has characters that cannot be seen. The code below leaves it out.`})}),C(e,{label:`Language`,chosen:t.language,onChoose:e=>p({language:e}),snippets:ye(f,{name:l,id:d})})]}),C(`li`,{className:U.step,children:[C(`h2`,{children:`4. Connect a coding agent, if you use one`}),C(j,{origin:f})]})]}),C(`div`,{className:U.aside,children:C(B,{arrival:a,organization:r.name,project:l})})]})]})}export{Se as WelcomeScreen};