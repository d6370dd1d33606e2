import{An as e}from"./shell-BmbjPjPK.js";var t=/^(?:~|null|true|false|yes|no|on|off|y|n|\.inf|\.nan|[-+]?(?:\.inf|[\d.][\d_.,:xXoObBeE+a-fA-F-]*)|\d{4}-\d\d?-\d\d?.*)$/i,n=/^[\s\-?:,[\]{}#&*!|>'"%@`=<]/,r=/: |:$| #|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]|\s$/u,i=/[\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]|[^\P{Cc}\n\t]/u,a=e=>e!==``&&!t.test(e)&&!n.test(e)&&!r.test(e),o=e=>JSON.stringify(e).replace(/[\p{Cf}\p{Zl}\p{Zp}\u007f-\u009f\ufffe\uffff]/gu,e=>[...Array(e.length).keys()].map(t=>`\\u${e.charCodeAt(t).toString(16).padStart(4,`0`)}`).join(``)),s=e=>a(e)?e:o(e);function c(e,t){if(!e.includes(`
`)||/^\n*$/.test(e)||i.test(e))return null;let n=/\n*$/.exec(e)?.[0].length??0,r=e.slice(0,e.length-n).split(`
`),a=r.find(e=>e!==``)??``;return`|${/^\s/.test(a)||r[0]===``?`2`:``}${n===0?`-`:n===1?``:`+`}\n${r.map(e=>e===``?``:t+e).join(`
`)}${`
`.repeat(Math.max(n-1,0))}`}var l=t=>typeof t==`object`&&!!t&&!(t instanceof e);function u(t,n){return typeof t==`string`?c(t,n)??s(t):t instanceof e?t.source:JSON.stringify(t)??`null`}var d=e=>Array.isArray(e)?e.map(e=>[`-`,e]):Object.entries(e).filter(([,e])=>e!==void 0).map(([e,t])=>[`${s(e)}:`,t]);function f(e){if(!l(e))return`${u(e,`  `)}\n`;let t=[],n=[{entries:d(e),pad:``,at:0}];if(n[0]?.entries.length===0)return Array.isArray(e)?`[]
`:`{}
`;let r=!1;for(let e=n.at(-1);e!==void 0;e=n.at(-1)){let i=e.entries[e.at];if(i===void 0){n.pop();continue}e.at+=1;let[a,o]=i;if(t.push(r?``:e.pad,a,` `),r=!1,!l(o)){t.push(u(o,`${e.pad}  `),`
`);continue}let s=d(o);s.length===0?t.push(Array.isArray(o)?`[]
`:`{}
`):(r=a===`-`,r||(t[t.length-1]=`
`),n.push({entries:s,pad:`${e.pad}  `,at:0}))}return t.join(``)}export{f as t};