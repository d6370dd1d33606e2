// Which experiment is looked at, and what it is compared with.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState, type RefObject } from "react";
import type { Experiment } from "../../../api/experiments";
import { Combobox, type ComboOption } from "../../../design/Combobox";
import { FailureLine } from "../../../design/FailureLine";
import { Icon } from "../../../design/Icon";
import { IconButton } from "../../../design/Button";
import { Menu } from "../../../design/Menu";
import { Popover } from "../../../design/Popover";
import { useOpener } from "../../../design/PopoverLogic";
import { problemOf } from "../../../lib/errors";
import { useLinks } from "../../../lib/links";
import { preferences } from "../../../lib/preferences";
import { navigate } from "../../../lib/router";
import { now, parseMoment, shortMoment } from "../../../lib/time";
import { choicesQuery } from "../queries";
import { MOST_OTHERS, type CompareState } from "../url";
import { ADD_ID } from "../ids";
import style from "./Head.module.css";

interface HeadProps {
  readonly state: CompareState;
  readonly projectId: string;
  readonly main: Experiment;
  /** What it is compared with; the first is the base. */
  readonly others: readonly Experiment[];
  readonly onCompared: (names: readonly string[]) => void;
  /** Looks at another experiment, compared with the others. */
  readonly onLook: (name: string, others: readonly string[]) => void;
}

const OPTIONS = 60;

function detailOf({ created, repo }: Experiment): string {
  const when = shortMoment(parseMoment(created), now.value, preferences.value.zone);
  return repo.commit === null ? when : `${repo.commit.slice(0, 7)}, ${when}`;
}

interface PickerProps extends HeadProps {
  readonly anchor: RefObject<HTMLElement | null>;
  readonly onClose: () => void;
}

function emptyWords(isRead: boolean, sought: string): string {
  if (!isRead) return "Reading the experiments";
  return sought.trim() === "" ? "There is no other experiment to compare with." : "No other experiment has such a name.";
}

/** A list of the project's experiments that can be added. */
function Picker({ state, projectId, main, others, onCompared, anchor, onClose }: PickerProps) {
  const [text, setText] = useState("");
  const { data: all, error, isFetching, refetch } = useQuery(choicesQuery(state.organization, projectId));
  const options = useMemo((): readonly ComboOption[] => {
    const taken = new Set([main.id, ...others.map(({ id }) => id)]);
    const wanted = text.trim().toLowerCase();
    return (all ?? [])
      .filter((one) => !taken.has(one.id) && one.name.toLowerCase().includes(wanted))
      .slice(0, OPTIONS)
      .map((one) => ({ id: one.name, label: one.name, detail: detailOf(one) }));
  }, [all, main, others, text]);
  return (
    <Popover label="Compare with" anchor={anchor} onClose={onClose} isBare>
      <div className={style["picker"]}>
        <Combobox
          form="inline"
          label="Experiment to compare with"
          placeholder="Experiment"
          value={text}
          onValue={setText}
          options={options}
          isFirstCurrent
          whenEmpty={
            <div className={style["none"]}>
              {all === undefined && error !== null && !isFetching ? (
                <FailureLine words="Could not be read" problem={problemOf(error, Date.now())} onRetry={() => void refetch()} />
              ) : (
                emptyWords(all !== undefined, text)
              )}
            </div>
          }
          onPick={({ id }) => {
            onClose();
            onCompared([...others.map(({ name }) => name), id]);
          }}
        />
      </div>
    </Popover>
  );
}

function Adder(props: HeadProps) {
  const button = useRef<HTMLButtonElement>(null);
  const panel = useOpener();
  if (props.others.length >= MOST_OTHERS) return null;
  return (
    <>
      <button {...panel.opener} ref={button} id={ADD_ID} type="button" className={style["add"]} title="Compare with another experiment (+)">
        <Icon name="plus" />
        {props.others.length === 0 ? "Compare" : <span className="only-spoken">Compare with another experiment</span>}
      </button>
      {panel.isOpen && <Picker {...props} anchor={button} onClose={panel.close} />}
    </>
  );
}

interface ChipProps extends HeadProps {
  readonly one: Experiment;
  readonly index: number;
}

function OtherChip({ state, main, others, one, index, onCompared, onLook }: ChipProps) {
  const links = useLinks();
  const names = others.map(({ name }) => name);
  const rest = names.filter((name) => name !== one.name);
  const isBase = index === 0;
  return (
    <li className={style["chip"]}>
      <Menu
        label={`${isBase ? "Base" : "Compared"}: ${one.name}`}
        button={
          <>
            {isBase && <span className={style["role"]}>base</span>}
            <span className={style["chipName"]}>{one.name}</span>
            <Icon name="down" />
          </>
        }
        items={[
          ...(isBase ? [] : [{ id: "base", title: "Make it the base", run: () => onCompared([one.name, ...rest]) }]),
          {
            id: "look",
            title: isBase ? "Swap the two" : "Look at it instead",
            run: () => onLook(one.name, isBase ? [main.name, ...rest] : [...rest, main.name]),
          },
          { id: "open", title: "Show it alone", run: () => onLook(one.name, []) },
          { id: "list", title: "Show all experiments", run: () => navigate(links.experiments(state.organization, state.project), "push") },
        ]}
      />
      <IconButton icon="close" label={`Compare without ${one.name}`} onClick={() => onCompared(rest)} />
    </li>
  );
}

export function Head(props: HeadProps) {
  const { main, others } = props;
  return (
    <div className={style["head"]}>
      <h1 tabIndex={-1} className={style["name"]} title={main.description || main.name}>
        {main.name}
      </h1>
      {others.length > 0 && <span className={style["versus"]}>against</span>}
      <ul className={style["chips"]} aria-label="Compared with">
        {others.map((one, index) => (
          <OtherChip key={one.id} {...props} one={one} index={index} />
        ))}
      </ul>
      <Adder {...props} />
    </div>
  );
}
