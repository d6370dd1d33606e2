import{t as e}from"./Code-BNW8nfOf.js";import{$ as t,Cn as n,Gt as r,Jt as i,Qt as a,W as o,Xt as s,Y as c,a as l,c as u,j as d,o as f,on as p,qt as m,rn as h,s as g,sn as _,y as v}from"./shell-D4u_MkmM.js";import{i as y,n as b,r as x,t as S}from"./quoting-D3kqmR1p.js";import{S as C,T as w,_ as T,c as E,h as D,l as O}from"./libraries-C3qNFk8Y.js";import{H as k,X as A,Z as j}from"./filter-CTnXQP7b.js";var M=e=>Date.parse(e.newest??``)||0;function N(e){return e.filter(e=>e.newest!==null).reduce((e,t)=>e===null||M(t)>M(e)?t:e,null)}function P(e,t){let n=N(e);if(n===null)return{kind:`waiting`};if(t===``)return{kind:`here`,project:n};let r=e.find(e=>e.name===t);return r!==void 0&&r.newest!==null?{kind:`here`,project:r}:{kind:`elsewhere`,project:n}}var F=700,I=700,L=async(e,t)=>p(await _(`POST`,`/v1/api_key`,{organization:e,body:{name:t}})),R=(e,t)=>E({queryKey:[`newest trace`,e,t],queryFn:async({signal:n})=>{let r={select:k(`root_span_id`),from:j(`project_logs`,t,`summary`),limit:1},i=(await A(e,r,{signal:n})).rows[0]?.root_span_id;return typeof i==`string`?i:null},staleTime:0});function z(e,t){let n=O({...a,staleTime:0,refetchInterval:e=>e.state.data?.hasRows!==!0&&F}).data?.hasRows===!0,r=O({...h(e),staleTime:0,refetchInterval:e=>{let r=P(e.state.data?.projects??[],t).kind===`here`;return n&&!r?I:!1}}),{refetch:i}=r;return T(()=>{n&&i()},[n,i]),{projects:r.data,arrival:P(r.data?.projects??[],t)}}var B={line:`_line_1y5si_3`,here:`_here_1y5si_23`};function V({project:e}){let t=g(e.newest),n=Math.max(f.value,t?.getTime()??0);return D(`span`,{title:l(t),children:u(t,n,d.value.zone)})}function H({organization:e,project:t,isNew:n}){let r=v(),a=O(R(e,t.id)).data??null,o=n?`primary`:`plain`;return a===null?D(i,{look:o,href:r.logs(e,t.name),children:`Open the logs`}):D(i,{look:o,href:r.trace(e,t.name,a),children:`Open the trace`})}function U({arrival:e,organization:t,project:n}){return D(`section`,{className:B.line,"aria-label":`Traces that have arrived`,role:`status`,children:e.kind===`waiting`?D(w,{children:[D(`h2`,{children:`Waiting for the first trace`}),D(`p`,{children:`Run the code of step 3. This page looks every 2 seconds and shows the trace when it is there.`})]}):D(w,{children:[D(`h2`,{className:e.kind===`here`?B.here:void 0,children:[e.kind===`here`&&D(s,{name:`check`}),e.kind===`here`?`A trace has arrived`:`Waiting for a trace in ${n}`]}),D(`p`,{children:[`The newest is in `,D(`strong`,{children:e.project.name}),`, `,D(V,{project:e.project}),`.`]}),D(H,{organization:t,project:e.project,isNew:e.kind===`here`})]})})}var W={form:`_form_1myin_3`,made:`_made_1myin_16`,key:`_key_1myin_25`};function G({organization:e}){let[i,a]=C(null),[o,s]=C(`first-trace`),[c,l]=C(null),[u,d]=C(!1),f=async t=>{if(t.preventDefault(),!u){if(o.trim()===``)return l(`Enter a name first.`);l(null),d(!0);try{a(await L(e,o.trim()))}catch(e){l(n(e,0).text)}finally{d(!1)}}};return i===null?D(`form`,{className:W.form,onSubmit:e=>void f(e),noValidate:!0,children:[D(t,{label:`Name of the key`,name:`key-name`,autoComplete:`off`,value:o,onChange:e=>s(e.currentTarget.value),fault:c}),D(m,{type:`submit`,"aria-disabled":u,children:`Make a key`})]}):D(`div`,{className:W.made,role:`status`,children:[D(`p`,{children:[`This is the key “`,i.name,`”. It is shown only now: copy it before you leave this page.`]}),D(`p`,{className:W.key,children:[D(`code`,{children:i.key}),D(r,{text:i.key,what:`the key`,title:`Copy`})]})]})}var K={screen:`_screen_m2edm_3`,columns:`_columns_m2edm_11`,steps:`_steps_m2edm_18`,step:`_step_m2edm_18`,project:`_project_m2edm_30`,aside:`_aside_m2edm_34`},q=({name:e,id:t})=>t===null||/^[ -~]*$/.test(e)?`project_name:${e}`:`project_id:${t}`,J=`sk-...`,Y=e=>[`export BRAINTRUST_API_KEY=${J}`,`export BRAINTRUST_API_URL=${y(e)} BRAINTRUST_APP_URL=${y(e)}`].join(`
`),X=e=>`import braintrust

logger = braintrust.init_logger(project=${x(e)})
with logger.start_span(name="answer", type="llm") as span:
    span.log(
        input="What is 2 + 2?",
        output="4",
        metadata={"model": "example"},
        metrics={"prompt_tokens": 8, "completion_tokens": 1},
    )
logger.flush()`,Z=e=>`import { initLogger } from "braintrust";

const logger = initLogger({ projectName: ${x(e)} });
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
await logger.flush();`,Q=(e,t)=>`export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf
export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=${y(`${e}/otel/v1/traces`)}
export OTEL_EXPORTER_OTLP_TRACES_HEADERS="authorization=Bearer%20$BRAINTRUST_API_KEY,x-bt-parent=${b(t)}"`,$=(e,t)=>`random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \\n'; }
now=$(date +%s)
curl -s ${y(`${e}/otel/v1/traces`)} \\
  -H "Authorization: Bearer $BRAINTRUST_API_KEY" -H 'Content-Type: application/json' \\
  -H ${y(`x-bt-parent: ${t}`)} -d @- <<EOF
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
EOF`;function ee(e,t){return[{id:`python`,title:`Python`,before:`Install the SDK with “pip install braintrust”, then run this file.`,code:X(t.name)},{id:`typescript`,title:`TypeScript`,before:`Install the SDK with “npm install braintrust”. Node.js runs this file as trace.mjs without a compiler.`,code:Z(t.name)},{id:`otlp`,title:`OTLP`,before:`Any OpenTelemetry SDK that starts with these variables sends its spans here.`,code:Q(e,q(t))},{id:`curl`,title:`cURL`,before:`This sends one span in the JSON form of OTLP. It needs no SDK.`,code:$(e,q(t))}]}var te=`quickstart`;function ne({state:n,organization:r}){let{projects:i,arrival:a}=z(r.name,n.project),s=N(i?.projects??[])?.name??i?.projects[0]?.name??te,l=S(n.project)||n.project===``,u=l&&n.project!==``?n.project:s,d=i?.projects.find(e=>e.name===u)?.id??null,f=window.location.origin,p=e=>o(c.write({...n,...e}),`replace`);return D(`div`,{className:K.screen,children:[D(`h1`,{tabIndex:-1,children:`Send traces`}),D(`div`,{className:K.columns,children:[D(`ol`,{className:K.steps,children:[D(`li`,{className:K.step,children:[D(`h2`,{children:`1. Make a key`}),D(G,{organization:r.name},r.id)]}),D(`li`,{className:K.step,children:[D(`h2`,{children:`2. Set the key and the address`}),D(e,{label:`Setting`,chosen:`shell`,onChoose:()=>void 0,snippets:[{id:`shell`,title:`Shell`,before:`Put your key in the place of the dots.`,code:Y(f)}]})]}),D(`li`,{className:K.step,children:[D(`h2`,{children:`3. Send a trace`}),D(`div`,{className:K.project,children:D(t,{label:`Project`,name:`project`,autoComplete:`off`,placeholder:s,value:n.project,onChange:e=>p({project:e.currentTarget.value}),hint:`A project that does not exist yet is made by its first trace.`,fault:l?null:`This name has characters that cannot be seen. The code below leaves it out.`})}),D(e,{label:`Language`,chosen:n.language,onChoose:e=>p({language:e}),snippets:ee(f,{name:u,id:d})})]})]}),D(`div`,{className:K.aside,children:D(U,{arrival:a,organization:r.name,project:u})})]})]})}export{ne as WelcomeScreen};