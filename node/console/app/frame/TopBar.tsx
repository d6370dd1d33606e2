// The top bar: where one is, the palette, the look of the page, help, and who is signed in.
import { personName, type Session } from "../api/schema";
import { Button, IconButton } from "../design/Button";
import { Icon } from "../design/Icon";
import { Kbd, withKeys } from "../design/Kbd";
import { Menu, type MenuItem } from "../design/Menu";
import { useLinks } from "../lib/links";
import { DENSITIES, prefer, preferences, THEMES } from "../lib/preferences";
import { projectOf, screenName, type Place } from "../routes";
import { DENSITY_TITLES, THEME_TITLES, type Opened } from "./commands";
import { leave } from "./leave";
import style from "./TopBar.module.css";

interface TopBarProps {
  readonly place: Place;
  readonly session: Session;
  readonly organization: string | null;
  readonly open: (dialog: Opened) => void;
}

const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

function lookItems(): readonly MenuItem[] {
  const { theme, density } = preferences.value;
  return [
    ...THEMES.map((one, index) => ({
      id: `theme-${one}`,
      title: capital(THEME_TITLES[one]),
      isChosen: one === theme,
      ...(index === 0 ? { heading: "Theme" } : {}),
      run: () => prefer({ theme: one }),
    })),
    ...DENSITIES.map((one, index) => ({
      id: `density-${one}`,
      title: capital(DENSITY_TITLES[one]),
      isChosen: one === density,
      ...(index === 0 ? { heading: "Rows" } : {}),
      run: () => prefer({ density: one }),
    })),
  ];
}

function personItems(session: Session): readonly MenuItem[] {
  const email = session.user.email;
  const name = personName(session.user);
  return [
    {
      id: "leave",
      heading: email === null || email === name ? name : `${name}, ${email}`,
      title: "Sign out",
      run: () => void leave(false),
    },
    { id: "leave-all", title: "Sign out everywhere", run: () => void leave(true) },
  ];
}

function Breadcrumb({ place, organization }: Pick<TopBarProps, "place" | "organization">) {
  const links = useLinks();
  const project = projectOf(place);
  return (
    <nav className={style["where"]} aria-label="Where you are">
      <ol>
        {organization !== null && place.at !== "start" && (
          <li>
            <a href={links.home(organization)}>{organization}</a>
          </li>
        )}
        {organization !== null && project !== "" && (
          <li>
            <a href={place.at === "welcome" ? links.home(organization, project) : links.logs(organization, project)}>
              {project}
            </a>
          </li>
        )}
        <li aria-current="page">{screenName(place)}</li>
      </ol>
    </nav>
  );
}

export function TopBar({ place, session, organization, open }: TopBarProps) {
  return (
    <header className={style["bar"]}>
      <div className={style["drawer"]}>
        <IconButton icon="menu" label="Show the screens" onClick={() => open("rail")} />
      </div>
      <Breadcrumb place={place} organization={organization} />
      <div className={style["tools"]}>
        <Button look="quiet" icon="search" title="Go to or do" onClick={() => open("palette")}>
          <span className="only-spoken">Go to or do</span>
          <span className={style["hint"]}>
            <Kbd keys="mod+k" />
          </span>
        </Button>
        <Menu label="Look of the page" isAlone button={<Icon name="contrast" />} items={lookItems()} />
        <IconButton icon="keyboard" label="Keys" hint={withKeys("Keys", "?")} onClick={() => open("keys")} />
        <Menu
          label={`Signed in as ${personName(session.user)}`}
          isAlone
          button={<Icon name="person" />}
          items={personItems(session)}
        />
      </div>
    </header>
  );
}
