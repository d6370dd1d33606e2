// The facts of a span: its metrics in their units, its metadata, where it came from, and its attachments.
import { useMemo } from "react";
import { isRecord, type Fields } from "../../../api/narrow";
import type { SpanHead, SpanPlace } from "../../../api/spans";
import { Json } from "../../../design/Json";
import { preferences } from "../../../lib/preferences";
import { attachmentsOf } from "./attachments";
import { filterBelow, isThere, titleOf } from "./Contents";
import style from "./Detail.module.css";
import type { FilterBy } from "./filter";
import { Medium } from "./Medium";
import { kindOf } from "../messages/media";
import { metricsOf } from "./metrics";
import { Pair, Section } from "./Section";

interface FactsProps {
  readonly place: SpanPlace;
  readonly head: SpanHead;
  readonly row: Fields;
  readonly onFilter: FilterBy | undefined;
}

function Metrics({ head, row, onFilter }: Omit<FactsProps, "place">) {
  const metrics = metricsOf(row, head.cost, preferences.value.zone);
  if (metrics.length === 0) return null;
  return (
    <Section title="Metrics">
      <dl className={style["pairs"]}>
        {metrics.map(({ name, key, text, value }) => (
          <Pair key={`${name} ${key}`} name={name}>
            <span
              title={key === null || onFilter === undefined ? undefined : "Alt click filters by the value"}
              onClick={(event) => event.altKey && key !== null && onFilter?.(["metrics", key], value, event.shiftKey)}
            >
              {text}
            </span>
          </Pair>
        ))}
      </dl>
    </Section>
  );
}

/** Attributes that the tree shows. */
const IN_TREE: ReadonlySet<string> = new Set(["name", "type"]);

const isFilled = (name: string, value: unknown): boolean =>
  isThere(value) && !(isRecord(value) && Object.keys(value).every((key) => name === "span_attributes" && IN_TREE.has(key)));

export function Facts(props: FactsProps) {
  const { place, row, onFilter } = props;
  const attachments = useMemo(() => attachmentsOf(row), [row]);
  return (
    <>
      {attachments.length > 0 && (
        <Section title="Attachments">
          <ul className={style["attachments"]}>
            {attachments.map((media) => (
              <li key={`${media.key} ${media.url}`}>
                <Medium organization={place.organization} kind={kindOf(media.type)} media={media} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Metrics {...props} />
      {["metadata", "span_attributes", "context", "origin"].filter((name) => isFilled(name, row[name])).map((name) => (
        <Section key={name} title={titleOf(name)}>
          <Json value={row[name]} label={titleOf(name)} onFilter={filterBelow(name, onFilter)} />
        </Section>
      ))}
    </>
  );
}
