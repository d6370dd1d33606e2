// The columns of the list of experiments.
import type { ExperimentFigures } from "../../../api/experiments";
import { Delta } from "../../../design/Delta";
import type { Direction, GridColumn } from "../../../design/GridTypes";
import { Icon } from "../../../design/Icon";
import { Menu } from "../../../design/Menu";
import { delta, duration, exactCount, money, NOTHING, score as scoreText, shortCount } from "../../../lib/numbers";
import { preferences } from "../../../lib/preferences";
import { fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import { scoreColumn, scoreOf, sortOf, type ListedExperiment } from "../listing";
import style from "../screen.module.css";

export interface ListActions {
  href(name: string): string;
  datasetHref(name: string, version: string): string;
  menu(one: ListedExperiment): readonly { readonly id: string; readonly title: string; readonly run: () => void }[];
}

type Column = GridColumn<ListedExperiment>;

const Nothing = () => <span className={style["faint"]}>{NOTHING}</span>;

/** A moment that follows the clock and the zone by itself. */
export function When({ at }: { readonly at: string }) {
  const moment = parseMoment(at);
  return <span title={fullMoment(moment)}>{shortMoment(moment, now.value, preferences.value.zone)}</span>;
}

function Score({ one, name }: { readonly one: ListedExperiment; readonly name: string }) {
  const figure = scoreOf(one, name);
  if (figure === null) return <Nothing />;
  const base = one.base?.scores.get(name);
  const difference = base === undefined ? null : figure.mean - base.mean;
  const spread = figure.deviation === null ? "" : `, spread ${scoreText(figure.deviation)}`;
  return (
    <span className={style["score"]} title={`Mean ${figure.mean.toFixed(4)} of ${exactCount(figure.count)} rows${spread}`}>
      <span>{scoreText(figure.mean)}</span>
      <span className={style["spread"]}>{figure.deviation === null ? "" : `±${scoreText(figure.deviation)}`}</span>
      <span className={style["change"]}>
        {difference !== null && (
          <Delta
            value={difference}
            text={delta(difference)}
            // The list pairs no rows, so that nothing tells the difference from chance.
            tone="none"
            title={`Against the baseline ${scoreText(base?.mean ?? null)}. The comparison shows whether it is certain.`}
          />
        )}
      </span>
    </span>
  );
}

function Name({ one, actions }: { readonly one: ListedExperiment; readonly actions: ListActions }) {
  const { name, tags } = one.experiment;
  return (
    <span className={style["nameCell"]}>
      {one.isRunning && <span className={style["running"]} role="img" aria-label="Running" title="Rows are still coming" />}
      <a href={actions.href(name)} tabIndex={-1} className={style["name"]} title={name}>
        {name}
      </a>
      {one.isBaseline && <span className={style["baseline"]}>baseline</span>}
      <span className={style["tags"]}>
        {tags.map((tag) => (
          <span key={tag} className={style["tag"]}>
            {tag}
          </span>
        ))}
      </span>
    </span>
  );
}

function Rows({ one }: { readonly one: ListedExperiment }) {
  const { figures, expected, isRunning } = one;
  if (figures === null) return <Nothing />;
  const of = isRunning && expected !== null && expected >= figures.rows ? ` of ${shortCount(expected)}` : "";
  return (
    <span title={`${exactCount(figures.rows)} rows${expected === null ? "" : `, ${exactCount(expected)} in the dataset`}`}>
      {shortCount(figures.rows)}
      {of}
    </span>
  );
}

function Commit({ one }: { readonly one: ListedExperiment }) {
  const { commit, branch, isDirty } = one.experiment.repo;
  if (commit === null) return branch === null ? <Nothing /> : <span>{branch}</span>;
  return (
    <span className={style["mono"]}>
      {commit.slice(0, 7)}
      {isDirty && <span title="With changes that were not committed">*</span>}
      {branch !== null && <span className={style["faint"]}> {branch}</span>}
    </span>
  );
}

function commitPreview({ experiment }: ListedExperiment): string | null {
  const { commit, branch, isDirty, author, message } = experiment.repo;
  if (commit === null) return null;
  const dirty = isDirty ? "With changes that were not committed." : null;
  return [message, commit, branch, author, dirty].filter((part) => part !== null).join("\n");
}

const detailsPreview = ({ experiment }: ListedExperiment): string | null => {
  const metadata = experiment.metadata === null ? null : JSON.stringify(experiment.metadata, null, 2);
  const parts = [experiment.description, experiment.tags.join(", "), metadata ?? ""].filter((part) => part !== "");
  return parts.length === 0 ? null : parts.join("\n");
};

function Dataset({ one, actions }: { readonly one: ListedExperiment; readonly actions: ListActions }) {
  if (one.dataset === null) return <Nothing />;
  const version = one.experiment.datasetVersion ?? "";
  return (
    <a
      href={actions.datasetHref(one.dataset, version)}
      tabIndex={-1}
      className={style["quietLink"]}
      title={version === "" ? one.dataset : `${one.dataset} at the version ${version}`}
    >
      {one.dataset}
      {version !== "" && <span className={style["faint"]}> @{version.slice(-6)}</span>}
    </a>
  );
}

function number(
  id: string,
  title: string,
  width: number,
  write: (figures: ExperimentFigures) => readonly [text: string, exact: string],
): Omit<Column, "sort"> {
  return {
    id,
    title,
    width,
    align: "end",
    cell: ({ figures }) => {
      if (figures === null) return <Nothing />;
      const [text, exact] = write(figures);
      return text === NOTHING || text === "0" ? <span className={style["faint"]}>{text}</span> : <span title={exact}>{text}</span>;
    },
  };
}

function Actions({ one, actions }: { readonly one: ListedExperiment; readonly actions: ListActions }) {
  return (
    <div className={style["actions"]}>
      <Menu
        label={`Actions of ${one.experiment.name}`}
        buttonId={actionsId(one.experiment.id)}
        tabIndex={-1}
        isAlone
        button={<Icon name="more" />}
        items={actions.menu(one)}
      />
    </div>
  );
}

/** The id of the button that opens the actions of an experiment. */
export const actionsId = (experiment: string): string => `experiment-actions-${experiment}`;

const scoreColumns = (scores: readonly string[]): readonly Omit<Column, "sort">[] =>
  scores.map((name) => ({
    id: scoreColumn(name),
    title: name,
    width: 156,
    cell: (one) => <Score one={one} name={name} />,
  }));

/** The columns that can be sorted by. */
function sortable(scores: readonly string[], actions: ListActions): readonly Omit<Column, "sort">[] {
  return [
    { id: "name", title: "Experiment", width: 220, grow: 2, cell: (one) => <Name one={one} actions={actions} />, preview: detailsPreview },
    { id: "created", title: "Created", width: 112, cell: ({ experiment }) => <When at={experiment.created} /> },
    { id: "rows", title: "Rows", width: 92, align: "end", cell: (one) => <Rows one={one} /> },
    ...scoreColumns(scores),
    number("duration", "Duration", 76, ({ duration: mean }) => [duration(mean), `Mean of the rows, ${exactCount(mean)} ms`]),
    number("tokens", "Tokens", 72, ({ tokens }) => [shortCount(tokens), exactCount(tokens)]),
    number("cost", "Cost", 84, ({ cost }) => [money(cost), cost === null ? "" : `$${cost}`]),
    {
      ...number("errors", "Errors", 64, ({ errors }) => [shortCount(errors), exactCount(errors)]),
      cell: ({ figures }) => {
        if (figures === null || figures.errors === 0) return <span className={style["faint"]}>{figures === null ? NOTHING : "0"}</span>;
        return <span className={style["bad"]}>{shortCount(figures.errors)}</span>;
      },
    },
    { id: "dataset", title: "Dataset", width: 130, cell: (one) => <Dataset one={one} actions={actions} /> },
    { id: "commit", title: "Commit", width: 140, cell: (one) => <Commit one={one} />, preview: commitPreview },
    { id: "by", title: "By", width: 120, cell: ({ by }) => (by === null ? <Nothing /> : <span title={by}>{by}</span>) },
  ];
}

export function listColumns(scores: readonly string[], sort: string, actions: ListActions): readonly Column[] {
  const { column, isDescending } = sortOf(sort);
  const directionOf = (id: string): Direction => (id !== column ? "none" : isDescending ? "descending" : "ascending");
  return [
    ...sortable(scores, actions).map((one): Column => ({ ...one, sort: directionOf(one.id) })),
    { id: "actions", title: "Actions", width: 72, cell: (one) => <Actions one={one} actions={actions} /> },
  ];
}
