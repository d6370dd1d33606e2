import{G as e,I as t,P as n,S as r,U as i,V as a,W as o,Z as s,a as c,c as l,d as u,et as d,i as f,k as p,l as m,n as h,q as g,r as _,rt as v,t as y,tt as b,u as x,v as S}from"./shell-mvXDZIvu.js";import{d as C,h as w,l as T,o as E,v as D}from"./libraries-B9H7QLeC.js";var O=e=>Date.parse(e.newest??``)||0;function k(e){return e.filter(e=>e.newest!==null).reduce((e,t)=>e===null||O(t)>O(e)?t:e,null)}function A(e,t){let n=k(e);if(n===null)return{kind:`waiting`};if(t===``)return{kind:`here`,project:n};let r=e.find(e=>e.name===t);return r!==void 0&&r.newest!==null?{kind:`here`,project:r}:{kind:`elsewhere`,project:n}}var j={line:`_line_1y5si_3`,here:`_here_1y5si_23`};function M({project:e}){let t=x(e.newest),n=Math.max(m.value,t?.getTime()??0);return T(`span`,{title:l(t),children:u(t,n,r.value.zone)})}function N({arrival:t,organization:n,project:r}){let i=S();return T(`section`,{className:j.line,"aria-label":`Traces that have arrived`,role:`status`,children:t.kind===`waiting`?T(D,{children:[T(`h2`,{children:`Waiting for the first trace`}),T(`p`,{children:`Run the code of step 3. This page looks every 2 seconds and shows the trace when it is there.`})]}):T(D,{children:[T(`h2`,{className:t.kind===`here`?j.here:void 0,children:[t.kind===`here`&&T(e,{name:`check`}),t.kind===`here`?`A trace has arrived`:`Waiting for a trace in ${r}`]}),T(`p`,{children:[`The newest is in `,T(`strong`,{children:t.project.name}),`, `,T(M,{project:t.project}),`.`]}),T(o,{look:t.kind===`here`?`primary`:`plain`,href:i.home(n,t.project.name),children:`Open the project list`})]})})}var P=2e3,F=5e3,I=async(e,t)=>d(await b(`POST`,`/v1/api_key`,{organization:e,body:{name:t}}));function L(e,t){let n=E({...g,staleTime:0,refetchInterval:e=>e.state.data?.hasRows!==!0&&P}).data?.hasRows===!0,r=E({...s(e),staleTime:0,refetchInterval:e=>{let r=A(e.state.data?.projects??[],t).kind===`here`;return n&&!r?F:!1}}),{refetch:i}=r;return C(()=>{n&&i()},[n,i]),{projects:r.data,arrival:A(r.data?.projects??[],t)}}var R={form:`_form_1myin_3`,made:`_made_1myin_16`,key:`_key_1myin_25`};function z({organization:e}){let[n,r]=w(null),[o,s]=w(`first-trace`),[c,l]=w(null),[u,d]=w(!1),f=async t=>{if(t.preventDefault(),!u){if(o.trim()===``)return l(`Enter a name first.`);l(null),d(!0);try{r(await I(e,o.trim()))}catch(e){l(v(e,0).text)}finally{d(!1)}}};return n===null?T(`form`,{className:R.form,onSubmit:e=>void f(e),noValidate:!0,children:[T(t,{label:`Name of the key`,name:`key-name`,autoComplete:`off`,value:o,onChange:e=>s(e.currentTarget.value),fault:c}),T(i,{type:`submit`,"aria-disabled":u,children:`Make a key`})]}):T(`div`,{className:R.made,role:`status`,children:[T(`p`,{children:[`This is the key “`,n.name,`”. It is shown only now: copy it before you leave this page.`]}),T(`p`,{className:R.key,children:[T(`code`,{children:n.key}),T(a,{text:n.key,what:`the key`,title:`Copy`})]})]})}var B={screen:`_screen_m2edm_3`,columns:`_columns_m2edm_11`,steps:`_steps_m2edm_18`,step:`_step_m2edm_18`,project:`_project_m2edm_30`,aside:`_aside_m2edm_34`},V=({name:e,id:t})=>t===null||/^[ -~]*$/.test(e)?`project_name:${e}`:`project_id:${t}`,H=`sk-...`,U=e=>[`export BRAINTRUST_API_KEY=${H}`,`export BRAINTRUST_API_URL=${f(e)} BRAINTRUST_APP_URL=${f(e)}`].join(`
`),W=e=>`import braintrust

logger = braintrust.init_logger(project=${_(e)})
with logger.start_span(name="answer", type="llm") as span:
    span.log(
        input="What is 2 + 2?",
        output="4",
        metadata={"model": "example"},
        metrics={"prompt_tokens": 8, "completion_tokens": 1},
    )
logger.flush()`,G=e=>`import { initLogger } from "braintrust";

const logger = initLogger({ projectName: ${_(e)} });
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
await logger.flush();`,K=(e,t)=>`export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf
export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=${f(`${e}/otel/v1/traces`)}
export OTEL_EXPORTER_OTLP_TRACES_HEADERS="authorization=Bearer%20$BRAINTRUST_API_KEY,x-bt-parent=${h(t)}"`,q=(e,t)=>`random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \\n'; }
now=$(date +%s)
curl -s ${f(`${e}/otel/v1/traces`)} \\
  -H "Authorization: Bearer $BRAINTRUST_API_KEY" -H 'Content-Type: application/json' \\
  -H ${f(`x-bt-parent: ${t}`)} -d @- <<EOF
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
EOF`;function J(e,t){return[{id:`python`,title:`Python`,before:`Install the SDK with “pip install braintrust”, then run this file.`,code:W(t.name)},{id:`typescript`,title:`TypeScript`,before:`Install the SDK with “npm install braintrust”. Node.js runs this file as trace.mjs without a compiler.`,code:G(t.name)},{id:`otlp`,title:`OTLP`,before:`Any OpenTelemetry SDK that starts with these variables sends its spans here.`,code:K(e,V(t))},{id:`curl`,title:`cURL`,before:`This sends one span in the JSON form of OTLP. It needs no SDK.`,code:q(e,V(t))}]}var Y=`quickstart`;function X({state:e,organization:r}){let{projects:i,arrival:a}=L(r.name,e.project),o=k(i?.projects??[])?.name??i?.projects[0]?.name??Y,s=y(e.project)||e.project===``,l=s&&e.project!==``?e.project:o,u=i?.projects.find(e=>e.name===l)?.id??null,d=window.location.origin,f=t=>p(n.write({...e,...t}),`replace`);return T(`div`,{className:B.screen,children:[T(`h1`,{tabIndex:-1,children:`Send traces`}),T(`div`,{className:B.columns,children:[T(`ol`,{className:B.steps,children:[T(`li`,{className:B.step,children:[T(`h2`,{children:`1. Make a key`}),T(z,{organization:r.name},r.id)]}),T(`li`,{className:B.step,children:[T(`h2`,{children:`2. Set the key and the address`}),T(c,{label:`Setting`,chosen:`shell`,onChoose:()=>void 0,snippets:[{id:`shell`,title:`Shell`,before:`Put your key in the place of the dots.`,code:U(d)}]})]}),T(`li`,{className:B.step,children:[T(`h2`,{children:`3. Send a trace`}),T(`div`,{className:B.project,children:T(t,{label:`Project`,name:`project`,autoComplete:`off`,placeholder:o,value:e.project,onChange:e=>f({project:e.currentTarget.value}),hint:`A project that does not exist yet is made by its first trace.`,fault:s?null:`This name has characters that cannot be seen. The code below leaves it out.`})}),T(c,{label:`Language`,chosen:e.language,onChoose:e=>f({language:e}),snippets:J(d,{name:l,id:u})})]})]}),T(`div`,{className:B.aside,children:T(N,{arrival:a,organization:r.name,project:l})})]})]})}export{X as WelcomeScreen};