// The sheet of all keys, made of the commands that exist now.
import { commands, type Command } from "../lib/commands";
import { prefer, preferences } from "../lib/preferences";
import { Dialog } from "./Dialog";
import { Kbd } from "./Kbd";
import style from "./KeySheet.module.css";

interface Group {
  readonly title: string;
  readonly list: readonly Command[];
}

function groupsOf(list: readonly Command[]): readonly Group[] {
  const withKeys = list.filter((command) => command.keys !== undefined);
  const titles = [...new Set(withKeys.map((command) => command.group))];
  return titles.map((title) => ({ title, list: withKeys.filter((command) => command.group === title) }));
}

export function KeySheet({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keys" form="wide" onClose={onClose}>
      <div className={style["groups"]}>
        {groupsOf(commands.value).map((group) => (
          <section key={group.title}>
            <h3 className={style["heading"]}>{group.title}</h3>
            <dl>
              {group.list.map((command) => (
                <div key={command.id} className={style["line"]}>
                  <dt>{command.title}</dt>
                  <dd>
                    <Kbd keys={command.keys ?? ""} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <label className={style["switch"]}>
        <input
          type="checkbox"
          checked={preferences.value.singleKeys}
          onChange={(event) => prefer({ singleKeys: event.currentTarget.checked })}
        />
        Use single letters as keys. Keys with Ctrl or ⌘ always work.
      </label>
    </Dialog>
  );
}
