// Queries to start from, where nothing was typed yet.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../../api/gate";
import { projectsQuery, readingOf } from "../../../api/queries";
import { ButtonLink } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { Empty } from "../../../design/Empty";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { useLinks } from "../../../lib/links";
import { busiest, examplesOf } from "../examples";
import type { QueryPart } from "../tabs";
import style from "./Examples.module.css";

interface ExamplesProps {
  readonly organization: string;
  /** The heading; absent where a dialog has one. */
  readonly title?: string;
  readonly onChoose: (part: QueryPart) => void;
}

export function Examples({ organization, title, onChoose }: ExamplesProps) {
  const query = useQuery(projectsQuery(organization));
  const links = useLinks();
  return (
    <Loaded
      reading={readingOf(query)}
      skeleton={<Skeleton lines={[[24], [24], [24]]} />}
      onSignIn={() => void askToSignIn().then(() => query.refetch())}
    >
      {({ projects }) => {
        const project = busiest(projects);
        if (project === null) {
          const way = (
            <ButtonLink look="primary" href={links.welcome(organization)}>
              Send the first trace
            </ButtonLink>
          );
          return <Empty action={way}>There is nothing to query yet. The first trace changes that.</Empty>;
        }
        return (
          <section className={classes(style["examples"], title === undefined && style["inDialog"])} aria-label={title ?? "Examples"}>
            {title !== undefined && <h2>{title}</h2>}
            <p className={style["about"]}>Each of them reads the logs of “{project.name}”.</p>
            <ul className={style["list"]}>
              {examplesOf(project).map((example) => (
                <li key={example.id}>
                  <button type="button" className={style["example"]} onClick={() => onChoose(example.part)}>
                    <span className={style["title"]}>{example.title}</span>
                    <span className={style["about"]}>{example.about}</span>
                  </button>
                </li>
              ))}
            </ul>
          </section>
        );
      }}
    </Loaded>
  );
}
