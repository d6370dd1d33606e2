// The monitor of a project that is known: its toolbar and its cards.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState, type ComponentType } from "react";
import { projectsQuery } from "../../../api/queries";
import { Button, ButtonLink } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { Icon } from "../../../design/Icon";
import { Menu } from "../../../design/Menu";
import { TimeRange } from "../../../design/TimeRange";
import { VersionControl } from "../../../design/VersionControl";
import type { RowShape } from "../../../btql";
import { useCommands } from "../../../lib/commands";
import { useFrozenAddress } from "../../../lib/frozen";
import { useLinks } from "../../../lib/links";
import { preferences } from "../../../lib/preferences";
import { boundsOf, frozen, type Bounds } from "../../../lib/range";
import type { SpanSource } from "../../../lib/trace";
import { announce } from "../../../lib/store";
import { now, shortMoment } from "../../../lib/time";
import { cardKey, titleOf, type Card } from "../cards";
import { monitorCommands } from "../commands";
import type { Dashboard } from "../dashboards";
import type { Scope } from "../queries";
import { isOverridden, monitorUrl, overridden, SHAPES, type MonitorState, type Refresh } from "../url";
import { useCards, usePlan, usePresent, useScope, useSettings, type Changes } from "../useMonitor";
import { Cards } from "./Cards";
import { ChartDialog } from "./ChartDialog";
import { DashboardMenu } from "./DashboardMenu";
import { GroupButton } from "./GroupButton";
import style from "./Monitor.module.css";

/** The properties of the bar that edits a filter as chips or as text. */
export interface FilterBarProps {
  readonly scope: {
    readonly organization: string;
    readonly source: SpanSource;
    readonly shape: RowShape;
    readonly bounds: Bounds;
    readonly filter: string;
  };
  readonly onChange: (filter: string, how: "push" | "replace") => void;
}

export interface MonitorProps {
  readonly state: MonitorState;
  /** What edits the filter. The frame hands it over, because features do not know each other. */
  readonly FilterBar: ComponentType<FilterBarProps>;
}

interface ShownProps extends MonitorProps {
  readonly projectId: string;
  readonly dashboards: readonly Dashboard[];
  /** Null for the built-in one. */
  readonly dashboard: Dashboard | null;
}

const REFRESH_NAMES: Readonly<Record<Refresh, string>> = { "": "Off", "10s": "Every 10 seconds", "1m": "Every minute" };
const REFRESH_ORDER: readonly Refresh[] = ["", "10s", "1m"];

interface RefreshProps {
  readonly refresh: Refresh;
  readonly onRefresh: (refresh: Refresh) => void;
  readonly onAgain: () => void;
  readonly onChooseVersion: () => void;
}

function RefreshMenu({ refresh, onRefresh, onAgain, onChooseVersion }: RefreshProps) {
  return (
    <Menu
      label={`Refresh: ${REFRESH_NAMES[refresh]}`}
      button={
        <>
          <Icon name="history" />
          <span className="only-spoken">Refresh: {refresh === "" ? "off" : ""}</span>
          {refresh !== "" && <span>{refresh === "10s" ? "10 s" : "1 min"}</span>}
        </>
      }
      items={[
        ...REFRESH_ORDER.map((one, index) => ({
          id: `every-${one}`,
          title: REFRESH_NAMES[one],
          isChosen: one === refresh,
          ...(index === 0 ? { heading: "Refresh" } : {}),
          run: () => onRefresh(one),
        })),
        { id: "again", heading: "Now", title: "Read the cards again", run: onAgain },
        { id: "version", heading: "The past", title: "Show an earlier state", run: onChooseVersion },
      ]}
    />
  );
}

interface AddProps {
  readonly cards: readonly Card[];
  readonly all: readonly Card[];
  readonly scope: Scope;
  readonly onArrange: (cards: readonly Card[]) => void;
  readonly onOwn: () => void;
}

function AddMenu({ cards, all, scope, onArrange, onOwn }: AddProps) {
  const shown = new Set(cards.map(cardKey));
  const hidden = all.filter((card) => !shown.has(cardKey(card)));
  return (
    <Menu
      label="Add a card"
      button={
        <>
          <Icon name="plus" />
          <span>Add</span>
        </>
      }
      items={[
        { id: "own", title: "Chart of an expression…", run: onOwn },
        ...hidden.map((card, index) => ({
          id: cardKey(card),
          title: titleOf(card, scope.shape),
          ...(index === 0 ? { heading: "Cards that are not shown" } : {}),
          run: () => {
            onArrange([...cards, card]);
            announce(`${titleOf(card, scope.shape)} is added`);
          },
        })),
      ]}
    />
  );
}

function ShapeSwitch({ scope, onChange }: { readonly scope: Scope; readonly onChange: Changes["change"] }) {
  const name = scope.shape === "traces" ? "Traces" : "Spans";
  return (
    <Menu
      label={`Counted: ${name}`}
      button={
        <>
          <span className="only-spoken">Counted: </span>
          <span>{name}</span>
          <Icon name="down" />
        </>
      }
      items={SHAPES.map((shape) => ({
        id: shape,
        title: shape === "traces" ? "Traces, grouped by their root" : "Spans, grouped by themselves",
        isChosen: shape === scope.shape,
        run: () => onChange({ shape }),
      }))}
    />
  );
}

/** Everything that the screen knows and can do. */
function useScreen({ state, projectId, dashboard }: ShownProps) {
  const { base, settings, changes } = useSettings(state, dashboard);
  const { version } = state;
  const { present, again } = usePresent(settings.range, version === "" ? state.refresh : "");
  const owner = useMemo(() => ({ organization: state.organization, projectId }), [state.organization, projectId]);
  const scope = useScope(owner, settings, version, present);
  const { plan, error, again: planAgain } = usePlan(scope, present);
  const arranged = useCards(settings, scope, changes.change);
  const [edited, setEdited] = useState<Card | "new" | null>(null);
  const [isChoosing, setChoosing] = useState(false);
  useCommands(
    useMemo(
      () => monitorCommands({ undo: changes.undo, redo: changes.redo, again, add: () => setEdited("new"), chooseVersion: () => setChoosing(true) }),
      [changes, again],
    ),
  );
  useFrozenAddress(() => {
    const fixed = { ...settings, range: frozen(settings.range, Date.now()) };
    return monitorUrl.write({ ...state, refresh: "", overrides: overridden(base, fixed) });
  });
  const before = useMemo(() => (error === null ? null : { error, again: planAgain }), [error]);
  return { base, settings, changes, again, owner, scope, plan, before, ...arranged, edited, setEdited, isChoosing, setChoosing };
}

type Screen = ReturnType<typeof useScreen>;

function EditedChart({ screen }: { readonly screen: Screen }) {
  const { scope, cards, arrange, edited, setEdited } = screen;
  if (edited === null) return null;
  const before = edited !== "new" && edited.kind === "own" ? edited : null;
  const others = cards.filter((card) => before === null || cardKey(card) !== cardKey(before));
  return (
    <ChartDialog
      scope={scope}
      before={before}
      isTaken={(name) => others.some((card) => titleOf(card, scope.shape) === name)}
      onDone={(chart) =>
        arrange(before === null ? [...cards, chart] : cards.map((card) => (cardKey(card) === cardKey(before) ? chart : card)))
      }
      onClose={() => setEdited(null)}
    />
  );
}

function Toolbar({ props, screen }: { readonly props: ShownProps; readonly screen: Screen }) {
  const { state, projectId, dashboards, dashboard, FilterBar } = props;
  const { base, settings, changes, again, owner, scope, cards, all, arrange, setEdited, setChoosing } = screen;
  const { organization, shape, filter } = scope;
  // The bounds of the filter stay when the cards move on, so that its offers are not read again with each refresh.
  const bounds = useMemo(() => boundsOf(settings.range, Date.now()), [settings.range]);
  const filtered = useMemo(
    () => ({ organization, source: { kind: "project_logs" as const, id: projectId }, shape, bounds, filter }),
    [organization, projectId, shape, bounds, filter],
  );
  return (
    <div className={style["bar"]} role="group" aria-label="What the cards show">
      <DashboardMenu
        {...{ owner, dashboards, settings, changes }}
        current={dashboard}
        isChanged={isOverridden(overridden(base, settings))}
      />
      <div className={style["filter"]}>
        <FilterBar scope={filtered} onChange={changes.onFilter} />
      </div>
      <div className={style["tools"]}>
        <ShapeSwitch scope={scope} onChange={changes.change} />
        <GroupButton scope={scope} onGroup={(group) => changes.change({ group })} />
        <TimeRange value={settings.range} onChange={(range) => changes.change({ range })} />
        <RefreshMenu refresh={state.refresh} onRefresh={changes.setRefresh} onAgain={again} onChooseVersion={() => setChoosing(true)} />
        <AddMenu {...{ cards, all, scope }} onArrange={arrange} onOwn={() => setEdited("new")} />
      </div>
    </div>
  );
}

/** What is particular about the cards, with the way back. */
function Notes({ screen, newest }: { readonly screen: Screen; readonly newest: string | null | undefined }) {
  const { scope, changes } = screen;
  const { from } = scope.bounds;
  const isBefore = typeof newest === "string" && from !== null && Date.parse(newest) < Date.parse(from);
  return (
    <>
      {isBefore && (
        <div className={style["note"]} role="note">
          <span>The newest trace is older than this range: {shortMoment(new Date(newest), now.value, preferences.value.zone)}.</span>
          <Button look="quiet" onClick={() => changes.change({ range: "all" })}>
            Show all time
          </Button>
        </div>
      )}
      {scope.group !== "" && (
        <div className={style["note"]} role="note">
          <span>
            {scope.shape === "traces" ? "Traces" : "Spans"} without a value of {scope.group} do not count.
          </span>
          <Button look="quiet" onClick={() => changes.change({ group: "" })}>
            Show without groups
          </Button>
        </div>
      )}
    </>
  );
}

export function Monitor(props: ShownProps) {
  const { state } = props;
  const screen = useScreen(props);
  const { settings, scope, plan, before, cards, arrange, setEdited } = screen;
  const links = useLinks();
  const projects = useQuery(projectsQuery(state.organization)).data?.projects;
  const newest = projects?.find(({ id }) => id === props.projectId)?.newest;
  return (
    <div className={style["monitor"]}>
      <Toolbar props={props} screen={screen} />
      <VersionControl
        version={state.version}
        isChoosing={screen.isChoosing}
        onChoosing={screen.setChoosing}
        onVersion={screen.changes.setVersion}
      />
      <Notes screen={screen} newest={newest} />
      <div className={style["scroll"]}>
        {newest === null ? (
          <Empty action={<ButtonLink href={links.welcome(state.organization, state.project)}>Send the first trace</ButtonLink>}>
            {state.project} has no traces yet.
          </Empty>
        ) : cards.length === 0 ? (
          <Empty action={<Button onClick={() => arrange(null)}>Show all cards</Button>}>This dashboard has no cards.</Empty>
        ) : (
          <Cards
            {...{ cards, scope, plan, before }}
            project={state.project}
            version={state.version}
            range={settings.range}
            onArrange={arrange}
            onEdit={setEdited}
          />
        )}
      </div>
      <EditedChart screen={screen} />
    </div>
  );
}
