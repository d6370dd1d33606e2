// The rail: the organization with its switch, and the screens that this version has.
import type { Session } from "../api/schema";
import { classes } from "../design/classes";
import { Icon, type IconName } from "../design/Icon";
import { IconButton } from "../design/Button";
import { withKeys } from "../design/Kbd";
import { Menu } from "../design/Menu";
import { useLinks } from "../lib/links";
import { prefer } from "../lib/preferences";
import { navigate } from "../lib/router";
import type { Place } from "../routes";
import style from "./Rail.module.css";

interface RailProps {
  readonly place: Place;
  readonly session: Session;
  readonly organization: string | null;
  readonly served: readonly string[] | undefined;
  readonly isFolded: boolean;
  /** Present in the drawer: what happens before going to a screen. */
  readonly onGo?: () => void;
}

interface EntryProps {
  readonly icon: IconName;
  readonly title: string;
  readonly href: string;
  readonly isCurrent: boolean;
  readonly isFolded: boolean;
  readonly onGo: (() => void) | undefined;
}

function Entry({ icon, title, href, isCurrent, isFolded, onGo }: EntryProps) {
  return (
    <a
      href={href}
      className={classes(style["entry"], isCurrent && style["current"])}
      aria-current={isCurrent ? "page" : undefined}
      title={isFolded ? title : undefined}
      onClick={onGo}
    >
      <Icon name={icon} />
      <span className={isFolded ? "only-spoken" : style["title"]}>{title}</span>
    </a>
  );
}

function OrganizationSwitch({ session, organization, isFolded, onGo }: RailProps) {
  const links = useLinks();
  const name = organization ?? "Assay";
  const letter = [...name][0]?.toUpperCase() ?? "A";
  return (
    <Menu
      label={`Organization: ${name}`}
      button={
        <>
          <span className={style["letter"]} aria-hidden={!isFolded}>
            {letter}
          </span>
          {!isFolded && (
            <>
              <span className={style["title"]}>{name}</span>
              <Icon name="down" />
            </>
          )}
        </>
      }
      isAlone={isFolded}
      items={session.organizations.map((one) => ({
        id: one.id,
        title: one.name,
        isChosen: one.name === organization,
        run: () => {
          onGo?.();
          navigate(links.home(one.name), "push");
        },
      }))}
    />
  );
}

export function Rail(props: RailProps) {
  const { place, organization, served, isFolded, onGo } = props;
  const links = useLinks();
  const isServed = (part: string): boolean => served === undefined || served.includes(part);
  return (
    <nav className={style["rail"]} aria-label="Screens">
      {props.session.organizations.length > 0 && (
        <div className={style["switch"]}>
          <OrganizationSwitch {...props} />
        </div>
      )}
      {organization !== null && isServed("home") && (
        <Entry
          icon="house"
          title="Home"
          href={links.home(organization)}
          isCurrent={place.at === "home"}
          isFolded={isFolded}
          onGo={onGo}
        />
      )}
      {organization !== null && isServed("welcome") && (
        <Entry
          icon="send"
          title="Send traces"
          href={links.welcome(organization)}
          isCurrent={place.at === "welcome"}
          isFolded={isFolded}
          onGo={onGo}
        />
      )}
      {onGo === undefined && (
        <div className={style["end"]}>
          <IconButton
            icon="panel"
            label={isFolded ? "Unfold the rail" : "Fold the rail"}
            hint={withKeys(isFolded ? "Unfold the rail" : "Fold the rail", "[")}
            aria-expanded={!isFolded}
            onClick={() => prefer({ railFolded: !isFolded })}
          />
        </div>
      )}
    </nav>
  );
}
