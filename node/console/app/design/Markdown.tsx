// A text in Markdown. It becomes elements of the page one by one; images and HTML of the text never do.
import { useMemo, type ReactNode } from "react";
import { classes } from "./classes";
import style from "./Markdown.module.css";
import { Marked } from "./Marked";
import { safeUrl, type Inline } from "./MarkdownLine";
import { markdownOf, type Block, type ListItem } from "./MarkdownTree";

/** Longer texts are shown as they are. */
const LENGTH_MAX = 300_000;

const wordsOf = (content: readonly Inline[]): string =>
  content.map((inline) => ("text" in inline ? inline.text : "content" in inline ? wordsOf(inline.content) : "")).join("");

/** Where a link leads, for people: the host, or the address of mail. */
const hostOf = (url: URL): string => (url.protocol === "mailto:" ? url.pathname : url.host);

function Link({ url, content }: { readonly url: string; readonly content: readonly Inline[] }) {
  const target = safeUrl(url);
  if (target === null) {
    return (
      <span title="The link leads nowhere that this page opens">
        <Line content={content} />
      </span>
    );
  }
  const host = hostOf(target);
  return (
    <>
      <a href={target.href} target="_blank" rel="noopener noreferrer" title={target.href}>
        <Line content={content} />
      </a>
      {!wordsOf(content).includes(host) && <span className={style["host"]}> ({host})</span>}
    </>
  );
}

/** An image as a chip. The page never loads it; a click opens it in a page of its own. */
function Image({ url, alt }: { readonly url: string; readonly alt: string }) {
  const target = safeUrl(url);
  const words = `Image${alt === "" ? "" : `: ${alt}`}`;
  if (target === null) return <span className={style["chip"]}>{words}</span>;
  return (
    <a className={style["chip"]} href={target.href} target="_blank" rel="noopener noreferrer" title={target.href}>
      {words} · {hostOf(target)}
    </a>
  );
}

function Piece({ inline }: { readonly inline: Inline }) {
  switch (inline.kind) {
    case "text":
      return <Marked text={inline.text} />;
    case "code":
      return <code className={style["code"]}>{inline.text}</code>;
    case "break":
      return <br />;
    case "link":
      return <Link url={inline.url} content={inline.content} />;
    case "image":
      return <Image url={inline.url} alt={inline.alt} />;
    case "mark": {
      const content = <Line content={inline.content} />;
      if (inline.mark === "strong") return <strong>{content}</strong>;
      return inline.mark === "em" ? <em>{content}</em> : <del>{content}</del>;
    }
  }
}

function Line({ content }: { readonly content: readonly Inline[] }): ReactNode {
  return content.map((inline, index) => <Piece key={index} inline={inline} />);
}

function Item({ item }: { readonly item: ListItem }) {
  const [only, ...rest] = item.blocks;
  return (
    <li className={item.isDone === null ? undefined : style["task"]}>
      {item.isDone !== null && <span className={style["box"]}>{item.isDone ? "Done: " : "To do: "}</span>}
      {only?.kind === "paragraph" ? <Line content={only.content} /> : only !== undefined && <Shown block={only} />}
      <Blocks blocks={rest} />
    </li>
  );
}

function Table({ block }: { readonly block: Extract<Block, { kind: "table" }> }) {
  const [head = [], ...rows] = block.rows;
  const alignOf = (column: number) => ({ textAlign: block.aligns[column] ?? "start" }) as const;
  return (
    <div className={style["scroll"]} tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {head.map((cell, column) => (
              <th key={column} style={alignOf(column)}>
                <Line content={cell} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column} style={alignOf(column)}>
                  <Line content={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Shown({ block }: { readonly block: Block }) {
  switch (block.kind) {
    case "heading":
      // headings of the text are no headings of the page
      return (
        <p className={classes(style["heading"], style[`level${Math.min(block.level, 4)}`])}>
          <Line content={block.content} />
        </p>
      );
    case "paragraph":
      return (
        <p>
          <Line content={block.content} />
        </p>
      );
    case "code":
      return (
        <pre className={style["block"]} tabIndex={0} role="region" aria-label={block.language === "" ? "Code" : `Code in ${block.language}`}>
          <code>{block.text}</code>
        </pre>
      );
    case "quote":
      return (
        <blockquote className={style["quote"]}>
          <Blocks blocks={block.blocks} />
        </blockquote>
      );
    case "list": {
      const items = block.items.map((item, index) => <Item key={index} item={item} />);
      return block.start === null ? <ul className={style["list"]}>{items}</ul> : <ol className={style["list"]} start={block.start}>{items}</ol>;
    }
    case "table":
      return <Table block={block} />;
    case "rule":
      return <hr className={style["rule"]} />;
  }
}

function Blocks({ blocks }: { readonly blocks: readonly Block[] }): ReactNode {
  return blocks.map((block, index) => <Shown key={index} block={block} />);
}

export function Markdown({ text }: { readonly text: string }) {
  const blocks = useMemo(() => (text.length > LENGTH_MAX ? null : markdownOf(text)), [text]);
  if (blocks === null) return <pre className={style["plain"]}>{text}</pre>;
  return (
    <div className={style["markdown"]}>
      <Blocks blocks={blocks} />
    </div>
  );
}
