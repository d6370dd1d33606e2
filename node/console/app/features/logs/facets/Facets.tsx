// The facets: fields of the rows, each with its values or its distribution once it is opened.
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { isAbort } from "../../../lib/errors";
import type { Chip, KnownField } from "../../../btql";
import { classes } from "../../../design/classes";
import { Icon } from "../../../design/Icon";
import { Skeleton } from "../../../design/Skeleton";
import { fieldsQuery } from "../filter/queries";
import type { Scope } from "../filter/scope";
import { useFilter } from "../filter/useFilter";
import style from "./Facets.module.css";
import { Failure } from "./Failure";
import { Numbers } from "./Numbers";
import type { FacetsProps } from "./props";
import { ERRORS_KEY, sectionsOf, type Facet } from "./sections";
import { ErrorValues, Values, type FacetBodyProps } from "./Values";

const OPEN_AT_FIRST: readonly string[] = [ERRORS_KEY, '["span_attributes","type"]', '["tags"]', '["metadata","model"]'];

const NO_FIELDS: readonly KnownField[] = [];

function Body(props: FacetBodyProps) {
  switch (props.facet.kind) {
    case "errors":
      return <ErrorValues {...props} />;
    case "numbers":
      return <Numbers {...props} />;
    case "values":
      return <Values {...props} />;
  }
}

interface FieldProps {
  readonly scope: Scope;
  readonly chips: readonly Chip[];
  readonly facet: Facet;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  readonly set: (chips: readonly Chip[]) => void;
}

function Field({ scope, chips, facet, isOpen, onToggle, set }: FieldProps) {
  const id = useId();
  return (
    <section className={style["facet"]}>
      <h4 className={style["heading"]}>
        <button
          type="button"
          className={style["toggle"]}
          aria-expanded={isOpen}
          aria-controls={isOpen ? id : undefined}
          title={facet.name}
          onClick={onToggle}
        >
          <span className={classes(style["arrow"], isOpen && style["down"])}>
            <Icon name="right" />
          </span>
          <span className={style["name"]}>{facet.title}</span>
        </button>
      </h4>
      {isOpen && (
        <div id={id} className={style["body"]}>
          <Body {...{ scope, chips, facet, set }} />
        </div>
      )}
    </section>
  );
}

export function Facets(props: FacetsProps) {
  const { scope } = props;
  const { chips, fault, set } = useFilter(props);
  const found = useQuery(fieldsQuery(scope));
  const [sought, setSought] = useState("");
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(OPEN_AT_FIRST));
  const sections = sectionsOf(found.data ?? NO_FIELDS, sought);
  const toggle = (key: string): void => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    setOpen(next);
  };
  if (fault !== null) {
    return <p className={style["unread"]}>There are no counts, because the filter cannot be understood.</p>;
  }
  return (
    <div className={style["facets"]}>
      <input
        type="search"
        className={style["search"]}
        aria-label="Find a field"
        placeholder="Find a field"
        autoComplete="off"
        value={sought}
        onInput={(event) => setSought(event.currentTarget.value)}
      />
      {sections.length === 0 && <p className={style["none"]}>No field has “{sought}” in its name.</p>}
      {sections.map(({ title, facets }) => (
        <section key={title} aria-label={title === "" ? "Usual fields" : title}>
          {title !== "" && <h3 className={style["section"]}>{title}</h3>}
          {facets.map((facet) => (
            <Field
              key={facet.key}
              {...{ scope, chips, facet, set }}
              isOpen={open.has(facet.key)}
              onToggle={() => toggle(facet.key)}
            />
          ))}
        </section>
      ))}
      {found.isPending && <Skeleton lines={[[14], [10], [12]]} />}
      {found.error !== null && !found.isFetching && !isAbort(found.error) && (
        <Failure error={found.error} words="Fields not read" onRetry={() => void found.refetch()} />
      )}
    </div>
  );
}
