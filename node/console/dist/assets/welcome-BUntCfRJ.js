import{t as e}from"./Code-D9xvan3o.js";import{$t as t,J as n,P as r,Rn as i,S as a,_n as o,c as s,dn as c,et as l,in as u,it as d,l as f,n as p,nn as m,o as ee,on as h,s as g,tn as _,vn as te}from"./shell-BNo5zVVI.js";import{a as v,i as ne,n as y,r as b,t as x}from"./quoting-bt3RB7aU.js";import{L as S,M as C,O as w,V as T,l as re,u as E}from"./libraries-V41Np9Ge.js";import{J as ie,q as ae,z as oe}from"./filter-BW4AZlz9.js";var D=e=>Date.parse(e.newest??``)||0;function O(e){return e.filter(e=>e.newest!==null).reduce((e,t)=>e===null||D(t)>D(e)?t:e,null)}function k(e,t){let n=O(e);if(n===null)return{kind:`waiting`};if(t===``)return{kind:`here`,project:n};let r=e.find(e=>e.name===t);return r!==void 0&&r.newest!==null?{kind:`here`,project:r}:{kind:`elsewhere`,project:n}}var A=700,j=700,M=async(e,t)=>o(await te(`POST`,`/v1/api_key`,{organization:e,body:{name:t}})),N=(e,t)=>re({queryKey:[`newest trace`,e,t],queryFn:async({signal:n})=>{let r={select:oe(`root_span_id`),from:ie(`project_logs`,t,`summary`),limit:1},i=(await ae(e,r,{signal:n})).rows[0]?.root_span_id;return typeof i==`string`?i:null},staleTime:0});function P(e,t){let n=E({...h,staleTime:0,refetchInterval:e=>e.state.data?.hasRows!==!0&&A}).data?.hasRows===!0,r=E({...c(e),staleTime:0,refetchInterval:e=>{let r=k(e.state.data?.projects??[],t).kind===`here`;return n&&!r?j:!1}}),{refetch:i}=r;C(()=>{n&&i()},[n,i]);let a=r.data!==void 0||r.isError;return{projects:r.data,arrival:a?k(r.data?.projects??[],t):null}}var F={line:`_line_1y5si_3`,here:`_here_1y5si_23`};function I({project:e}){let t=s(e.newest),n=Math.max(g.value,t?.getTime()??0);return w(`span`,{title:ee(t),children:f(t,n,r.value.zone)})}function L({organization:e,project:t,isNew:n}){let r=a(),i=E(N(e,t.id)).data??null,o=n?`primary`:`plain`;return i===null?w(m,{look:o,href:r.logs(e,t.name),children:`Open the logs`}):w(m,{look:o,href:r.trace(e,t.name,i),children:`Open the trace`})}function R({arrival:e,organization:t,project:n}){return w(`section`,{className:F.line,"aria-label":`Traces that have arrived`,role:`status`,children:e===null?w(p,{lines:[[24],[40]]}):e.kind===`waiting`?w(T,{children:[w(`h2`,{children:`Waiting for the first trace`}),w(`p`,{children:`Run the code of step 3. This page looks every 2 seconds and shows the trace when it is there.`})]}):w(T,{children:[w(`h2`,{className:e.kind===`here`?F.here:void 0,children:[e.kind===`here`&&w(u,{name:`check`}),e.kind===`here`?`A trace has arrived`:`Waiting for a trace in ${n}`]}),w(`p`,{children:[`The newest is in `,w(`strong`,{children:e.project.name}),`, `,w(I,{project:e.project}),`.`]}),w(L,{organization:t,project:e.project,isNew:e.kind===`here`})]})})}var z={form:`_form_1myin_3`,made:`_made_1myin_16`,key:`_key_1myin_25`};function B({organization:e}){let[n,r]=S(null),[a,o]=S(`first-trace`),[s,c]=S(null),[l,u]=S(!1),f=async t=>{if(t.preventDefault(),!l){if(a.trim()===``)return c(`Enter a name first.`);c(null),u(!0);try{r(await M(e,a.trim()))}catch(e){c(i(e,0).text)}finally{u(!1)}}};return n===null?w(`form`,{className:z.form,onSubmit:e=>void f(e),noValidate:!0,children:[w(d,{label:`Name of the key`,name:`key-name`,autoComplete:`off`,value:a,onChange:e=>o(e.currentTarget.value),fault:s}),w(_,{type:`submit`,"aria-disabled":l,children:`Make a key`})]}):w(`div`,{className:z.made,role:`status`,children:[w(`p`,{children:[`This is the key “`,n.name,`”. It is shown only now: copy it before you leave this page.`]}),w(`p`,{className:z.key,children:[w(`code`,{children:n.key}),w(t,{text:n.key,what:`the key`,title:`Copy`})]})]})}var V={screen:`_screen_oexpn_3`,columns:`_columns_oexpn_11`,steps:`_steps_oexpn_18`,step:`_step_oexpn_18`,project:`_project_oexpn_31`,aside:`_aside_oexpn_35`},H=[[`braintrust.span_attributes`,`{"type": "llm"}`],[`braintrust.input_json`,`"What is 2 + 2?"`],[`braintrust.output_json`,`"4"`],[`braintrust.metadata`,`{"model": "example"}`],[`braintrust.metrics`,`{"prompt_tokens": 8, "completion_tokens": 1}`]],U=e=>H.map(([t,n])=>e(t,n)).join(`
`),se=e=>`import braintrust

logger = braintrust.init_logger(project=${b(e)})
with logger.start_span(name="answer", type="llm") as span:
    span.log(
        input="What is 2 + 2?",
        output="4",
        metadata={"model": "example"},
        metrics={"prompt_tokens": 8, "completion_tokens": 1},
    )
logger.flush()`,W=e=>`import { initLogger } from "braintrust";

const logger = initLogger({ projectName: ${b(e)} });
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
await logger.flush();`,G=e=>`package main

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
	client, err := braintrust.New(provider, braintrust.WithProject(${b(e)}))
	if err != nil {
		log.Fatal(err)
	}
	_, span := client.Tracer("example").Start(ctx, "answer")
	span.SetAttributes(
${U((e,t)=>`\t\tattribute.String("${e}", \`${t}\`),`)}
	)
	span.End()
	if err := provider.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}`,K=e=>`require "braintrust"

Braintrust.init(default_project: ${ne(e)})
tracer = OpenTelemetry.tracer_provider.tracer("example")
tracer.in_span("answer") do |span|
${U((e,t)=>`  span.set_attribute("${e}", '${t}')`)}
end
OpenTelemetry.tracer_provider.shutdown`,ce=({by:e,text:t})=>`import dev.braintrust.Braintrust;
import dev.braintrust.config.BraintrustConfig;

public class Answer {
    public static void main(String[] args) {
        var config = BraintrustConfig.builder().${e===`id`?`defaultProjectId`:`defaultProjectName`}(${b(t)}).build();
        var tracer = Braintrust.get(config).openTelemetryCreate().getTracer("example");
        var span = tracer.spanBuilder("answer").startSpan();
${U((e,t)=>`        span.setAttribute("${e}", ${b(t)});`)}
        span.end();
        // The SDK sends the span before the program exits.
    }
}`,le=({by:e,text:t})=>`using Braintrust.Sdk.Config;
using Braintrust.Sdk.Trace;

var config = BraintrustConfig.Of(("${e===`id`?`BRAINTRUST_DEFAULT_PROJECT_ID`:`BRAINTRUST_DEFAULT_PROJECT_NAME`}", ${b(t)}));
var source = Braintrust.Sdk.Braintrust.Get(config).GetActivitySource();
using (var span = source.StartActivity("answer"))
{
${U((e,t)=>`    span?.SetTag("${e}", ${b(t)});`)}
}
BraintrustTracing.ForceFlush();`,ue=`dev.braintrust:braintrust-sdk-java:0.3.13`,q=4317,J=e=>/^[ -~]*$/.test(e),Y=({name:e,id:t})=>t===null||J(e)?{by:`name`,text:e}:{by:`id`,text:t},X=({name:e,id:t})=>t===null&&!J(e)?` Headers hold only ASCII here, so make this project first: the code then names it by its id.`:``;function Z(e){let{by:t,text:n}=Y(e);return`project_${t}:${n}`}var de=`sk-...`,fe=e=>[`export BRAINTRUST_API_KEY=${de}`,`export BRAINTRUST_API_URL=${v(e)} BRAINTRUST_APP_URL=${v(e)}`].join(`
`),Q=(e,t,n)=>`export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=${e}
export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=${v(t)}
export OTEL_EXPORTER_OTLP_TRACES_HEADERS="authorization=Bearer%20$BRAINTRUST_API_KEY,x-bt-parent=${y(n)}"`;function pe(e){let{protocol:t,hostname:n}=new URL(e);return`${t}//${n}:${q}`}var $=(e,t)=>`random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \\n'; }
now=$(date +%s)
curl -s ${v(`${e}/otel/v1/traces`)} \\
  -H "Authorization: Bearer $BRAINTRUST_API_KEY" -H 'Content-Type: application/json' \\
  -H ${v(`x-bt-parent: ${t}`)} -d @- <<EOF
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
EOF`,me=e=>[{id:`python`,title:`Python`,before:`Install the SDK with “pip install braintrust”, then run this file.`,code:se(e.name)},{id:`typescript`,title:`TypeScript`,before:`Install the SDK with “npm install braintrust”. Node.js runs this file as trace.mjs without a compiler.`,code:W(e.name)},{id:`go`,title:`Go`,before:`Make a module with “go mod init answer” and install the SDK with “go get github.com/braintrustdata/braintrust-sdk-go”. Then run this file as main.go with “go run main.go”.`,code:G(e.name)},{id:`ruby`,title:`Ruby`,before:`Install the SDK with “gem install braintrust”, then run this file. It needs Ruby 3.2 or later.`,code:K(e.name)},{id:`java`,title:`Java`,before:`Add ${ue} to the dependencies of a build with Gradle or Maven, then run this class. It needs Java 17 or later.${X(e)}`,code:ce(Y(e))},{id:`csharp`,title:`C#`,before:`Make a project with “dotnet new console” and install the SDK with “dotnet add package Braintrust.Sdk”. Then put this code into its Program.cs and start it with “dotnet run”. It needs .NET 8 or later.${X(e)}`,code:le(Y(e))}],he=(e,t)=>[{id:`otlp`,title:`OTLP/HTTP`,before:`Any OpenTelemetry SDK that starts with these variables sends its spans here.${X(t)}`,code:Q(`http/protobuf`,`${e}/otel/v1/traces`,Z(t))},{id:`grpc`,title:`OTLP/gRPC`,before:`These variables send the spans of any OpenTelemetry SDK over gRPC. The address is that of the setting http.otlp_listen: port ${q} of this host, unless your operator has set another.${X(t)}`,code:Q(`grpc`,pe(e),Z(t))},{id:`curl`,title:`cURL`,before:`This sends one span in the JSON form of OTLP. It needs no SDK.`,code:$(e,Z(t))}],ge=(e,t)=>[...me(t),...he(e,t)],_e=`quickstart`;function ve({state:t,organization:r}){let{projects:i,arrival:a}=P(r.name,t.project),o=O(i?.projects??[])?.name??i?.projects[0]?.name??_e,s=x(t.project)||t.project===``,c=s&&t.project!==``?t.project:o,u=i?.projects.find(e=>e.name===c)?.id??null,f=window.location.origin,p=e=>n(l.write({...t,...e}),`replace`);return w(`div`,{className:V.screen,children:[w(`h1`,{tabIndex:-1,children:`Send traces`}),w(`div`,{className:V.columns,children:[w(`ol`,{className:V.steps,children:[w(`li`,{className:V.step,children:[w(`h2`,{children:`1. Make a key`}),w(B,{organization:r.name},r.id)]}),w(`li`,{className:V.step,children:[w(`h2`,{children:`2. Set the key and the address`}),w(e,{label:`Setting`,chosen:`shell`,onChoose:()=>void 0,snippets:[{id:`shell`,title:`Shell`,before:`Put your key in the place of the dots.`,code:fe(f)}]})]}),w(`li`,{className:V.step,children:[w(`h2`,{children:`3. Send a trace`}),w(`div`,{className:V.project,children:w(d,{label:`Project`,name:`project`,autoComplete:`off`,placeholder:o,value:t.project,onChange:e=>p({project:e.currentTarget.value}),hint:`A project that does not exist yet is made by its first trace.`,fault:s?null:`This name has characters that cannot be seen. The code below leaves it out.`})}),w(e,{label:`Language`,chosen:t.language,onChoose:e=>p({language:e}),snippets:ge(f,{name:c,id:u})})]})]}),w(`div`,{className:V.aside,children:w(R,{arrival:a,organization:r.name,project:c})})]})]})}export{ve as WelcomeScreen};