// The versions of a prompt or function, the newest first, with their notes and environments.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import { MOST_VERSIONS, type PromptVersion } from "../../../api/prompts";
import { classes } from "../../../design/classes";
import { Icon } from "../../../design/Icon";
import { Loaded } from "../../../design/Loaded";
import { Marked } from "../../../design/Marked";
import { Menu, type MenuItem } from "../../../design/Menu";
import { Skeleton } from "../../../design/Skeleton";
import { environmentsQuery, userNamesQuery } from "../queries";
import type { Desk } from "../useDesk";
import type { Opened } from "../opened";
import style from "./parts.module.css";
import { Environments, versionInWords, VersionTime } from "./Words";

const LINES = [[14, 8], [14, 8], [14, 8]];

interface VersionsProps {
  readonly desk: Desk;
  readonly onOpen: (opened: Opened) => void;
}

interface RowProps extends VersionsProps {
  readonly one: PromptVersion;
  readonly before: PromptVersion | undefined;
  readonly author: string;
}

function useItems({ desk, one, before, onOpen }: RowProps): readonly MenuItem[] {
  const environments = useQuery(environmentsQuery(desk.place.organization)).data ?? [];
  const { version } = one;
  const isNewest = version === desk.newest.version;
  const has = (slug: string): boolean => desk.pinned.some((pinned) => pinned.slug === slug && pinned.version === version);
  const compare = (compared: string): void => desk.show({ version: isNewest ? "" : version, compare: compared, environment: "" });
  return [
    ...(before === undefined ? [] : [{ id: "before", title: "Compare with the one before", run: () => compare(before.version) }]),
    ...(isNewest ? [] : [
      { id: "newest", title: "Compare with the newest", run: () => desk.show({ version: "", compare: version, environment: "" }) },
      { id: "restore", title: "Restore as a new version", run: () => onOpen({ what: "restore", version }) },
    ]),
    ...environments.map(({ slug }, index) => ({
      id: `env-${slug}`,
      title: has(slug) ? `Take ${slug} away` : `Put ${slug} on it`,
      ...(index === 0 ? { heading: "Environments" } : {}),
      run: () => onOpen({ what: "pin", slug, version: has(slug) ? null : version }),
    })),
    { id: "environment", title: "New environment", ...(environments.length === 0 ? { heading: "Environments" } : {}), run: () => onOpen({ what: "environment", version }) },
  ];
}

function Row(props: RowProps) {
  const { desk, one, author } = props;
  const items = useItems(props);
  const { version, note } = one;
  const isNewest = version === desk.newest.version;
  const isShown = desk.shown?.version === version;
  const pinned = desk.pinned.filter((pin) => pin.version === version);
  return (
    <li className={classes(style["version"], isShown && style["shownVersion"])}>
      <div>
        <a
          className={style["link"]}
          aria-current={isShown ? "true" : undefined}
          href={desk.hrefOf({ version: isNewest ? "" : version, compare: "", environment: "" })}
        >
          <VersionTime version={version} />
        </a>
        {isNewest && <span className={style["faint"]}>, newest</span>}
        {author !== "" && <span className={style["faint"]}> by {author}</span>}
        <span className={style["chips"]}>
          <Environments pinned={pinned} />
        </span>
        {note !== "" && <p className={style["note"]}><Marked text={note} /></p>}
      </div>
      <Menu label={`Actions of the version of ${versionInWords(version)}`} isAlone button={<Icon name="more" />} items={items} />
    </li>
  );
}

export function Versions({ desk, onOpen }: VersionsProps) {
  const { versionsRead } = desk;
  const names = useQuery(userNamesQuery(desk.place.organization)).data;
  return (
    <Loaded reading={readingOf(versionsRead)} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(() => versionsRead.refetch())}>
      {(versions) => (
        <>
          <ol className={style["versions"]} aria-label="Versions">
            {versions.map((one, index) => (
              <Row key={one.version} {...{ desk, one, onOpen }} before={versions[index + 1]} author={names?.get(one.author) ?? ""} />
            ))}
          </ol>
          {versions.length >= MOST_VERSIONS && <p className={style["note"]}>The last {MOST_VERSIONS} versions are shown.</p>}
        </>
      )}
    </Loaded>
  );
}
