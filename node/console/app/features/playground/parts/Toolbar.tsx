// The bar above the table: run, stop, what has run, and what is compared with what.
import { Button } from "../../../design/Button";
import { Icon } from "../../../design/Icon";
import { withKeys } from "../../../design/Kbd";
import { Menu } from "../../../design/Menu";
import { useLinks } from "../../../lib/links";
import { exactCount, money } from "../../../lib/numbers";
import { navigate } from "../../../lib/router";
import { keysOf, titleOf, type Action } from "../commands";
import { figuresOf } from "../figures";
import type { Desk } from "../useDesk";
import { playgroundDefaults, writePlace } from "../url";
import style from "./Desk.module.css";

const hintOf = (action: Action): string => withKeys(titleOf(action), keysOf(action));

function Title({ desk }: { readonly desk: Desk }) {
  const { place, name, editing } = desk;
  const { fault, isSaved, save } = editing;
  return (
    <div className={style["title"]}>
      <a href={writePlace(playgroundDefaults(place.organization, place.project))} className={style["up"]}>
        Playgrounds
      </a>
      <span aria-hidden="true">/</span>
      <h1 tabIndex={-1}>{name}</h1>
      {fault === null ? (
        <span className={style["faint"]}>{isSaved ? "Saved" : "Saving…"}</span>
      ) : (
        <span className={style["bad"]} role="alert">
          Not saved: {fault} <Button onClick={save}>Save again</Button>
        </span>
      )}
    </div>
  );
}

function Progress({ desk }: { readonly desk: Desk }) {
  // counted again when this changes
  desk.runs.store.changes.value;
  const all = desk.all();
  const { done, failed, faulty, open, cost } = figuresOf(all.map((cell) => desk.runs.store.get(cell)));
  const rest = open > 0 ? 0 : desk.rest().length;
  return (
    <>
      {open > 0 ? (
        <Button icon="stop" title={hintOf("stop")} onClick={desk.stop}>
          Stop
        </Button>
      ) : (
        <Button look="primary" icon="play" title={hintOf("run")} disabled={all.length === 0} onClick={desk.runAll}>
          Run all
        </Button>
      )}
      {open === 0 && rest > 0 && rest < all.length && (
        <Button title="Run the cells that have not run, or were changed since" onClick={() => desk.runs.start(desk.rest())}>
          Run the other {exactCount(rest)}
        </Button>
      )}
      {faulty > 0 && open === 0 && (
        <Button title={hintOf("retry")} onClick={desk.retryFailed}>
          Retry {exactCount(faulty)} failed
        </Button>
      )}
      <span className={style["progress"]} role="group" aria-label="Progress">
        <span>
          {exactCount(done)} of {exactCount(all.length)} {all.length === 1 ? "cell" : "cells"} done
        </span>
        {failed > 0 && <span className={style["bad"]}>{exactCount(failed)} failed</span>}
        {cost !== null && <span>{money(cost)}</span>}
      </span>
    </>
  );
}

function rowsName({ playground, rows }: Desk): string {
  if (playground.rows.kind === "input") return "One input";
  return `${playground.rows.name} (${rows.isAll ? "" : "first "}${exactCount(rows.all.length)})`;
}

export function Toolbar({ desk }: { readonly desk: Desk }) {
  const { playground, state, change, setOpened } = desk;
  const links = useLinks();
  const { rows, scorers } = playground;
  return (
    <header className={style["head"]}>
      <Title desk={desk} />
      <div className={style["tools"]}>
        <Progress desk={desk} />
        <span className={style["space"]} />
        <Button icon="plus" title={hintOf("prompts")} onClick={() => setOpened({ what: "prompts" })}>
          Prompts
        </Button>
        <Button icon="plus" title={hintOf("models")} disabled={playground.prompts.length === 0} onClick={() => setOpened({ what: "models" })}>
          Models
        </Button>
        <Button icon="database" aria-label={`Rows: ${rowsName(desk)}`} onClick={() => setOpened({ what: "rows" })}>
          {rowsName(desk)}
        </Button>
        <Button icon="checks" title={hintOf("scorers")} onClick={() => setOpened({ what: "scorers" })}>
          {scorers.length === 0 ? "Scorers" : `Scorers (${exactCount(scorers.length)})`}
        </Button>
        <Button
          look="quiet"
          aria-pressed={state.isDiff}
          title={hintOf("diff")}
          onClick={() => change({ isDiff: !state.isDiff })}
        >
          Diff
        </Button>
        <Button icon="flask" aria-label={titleOf("experiment")} title={hintOf("experiment")} onClick={() => setOpened({ what: "experiment" })}>
          Save
        </Button>
        <Menu
          label="More"
          isAlone
          button={<Icon name="more" />}
          items={[
            { id: "rename", title: "Rename", run: () => setOpened({ what: "rename" }) },
            { id: "missing", title: "Run the missing scorers", run: () => desk.runs.score(desk.all()) },
            ...(rows.kind === "dataset"
              ? [{ id: "dataset", title: "Open the dataset", run: () => navigate(links.dataset(desk.place.organization, desk.place.project, rows.name), "push") }]
              : []),
            { id: "delete", title: "Delete the playground", run: () => setOpened({ what: "delete" }) },
          ]}
        />
      </div>
    </header>
  );
}
