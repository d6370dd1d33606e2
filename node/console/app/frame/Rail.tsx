// The rail: the organization with its switch, and the screens that this version has.
import { useQuery } from "@tanstack/react-query";
import { projectsQuery } from "../api/queries";
import type { Session } from "../api/schema";
import { classes } from "../design/classes";
import { Icon, type IconName } from "../design/Icon";
import { IconButton } from "../design/Button";
import { withKeys } from "../design/Kbd";
import { Menu } from "../design/Menu";
import { isHeldBack } from "../lib/first";
import { useLinks } from "../lib/links";
import { PAGES, type PageId } from "../lib/pages";
import { prefer } from "../lib/preferences";
import { navigate } from "../lib/router";
import { projectOf, type Place } from "../routes";
import { isServed } from "./served";
import style from "./Rail.module.css";

interface RailProps {
  readonly place: Place;
  readonly session: Session;
  readonly organization: string | null;
  readonly served: readonly string[] | undefined;
  readonly isFolded: boolean;
  /** Present in the drawer: what happens before going to a screen. */
  readonly onGo?: (() => void) | undefined;
}

/** What entries and their sections have in common. */
type Section = Pick<RailProps, "isFolded" | "onGo">;

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

/** The project with its switch; without projects there is nothing to switch. */
function ProjectSwitch({ organization, project, isFolded, onGo }: ProjectProps) {
  const links = useLinks();
  const projects = useQuery({ ...projectsQuery(organization), enabled: !isHeldBack.value }).data?.projects ?? [];
  return (
    <div className={style["switch"]}>
      <Menu
        label={`Project: ${project}`}
        isAlone={isFolded}
        button={
          <>
            <Icon name="folder" />
            {!isFolded && (
              <>
                <span className={style["title"]}>{project}</span>
                <Icon name="down" />
              </>
            )}
          </>
        }
        items={projects.map((one) => ({
          id: one.id,
          title: one.name,
          isChosen: one.name === project,
          run: () => {
            onGo?.();
            navigate(links.logs(organization, one.name), "push");
          },
        }))}
      />
    </div>
  );
}

const PAGE_ICONS: Readonly<Record<PageId, IconName>> = {
  prompts: "message",
  functions: "braces",
  playgrounds: "grid",
  review: "checks",
  settings: "settings",
  cluster: "server",
};

interface PageEntriesProps extends Section {
  readonly within: (typeof PAGES)[number]["within"];
  readonly organization: string;
  readonly project: string;
  readonly place: Place;
  readonly served: readonly string[] | undefined;
}

/** The entries of the pages that the server serves. */
function PageEntries({ within, organization, project, place, served, isFolded, onGo }: PageEntriesProps) {
  const links = useLinks();
  return PAGES.filter((page) => page.within === within && served?.includes(page.id)).map(({ id, title }) => (
    <Entry
      key={id}
      icon={PAGE_ICONS[id]}
      title={title}
      href={links.page(id, organization, project)}
      isCurrent={place.at === "page" && place.page.id === id}
      isFolded={isFolded}
      onGo={onGo}
    />
  ));
}

interface ProjectProps extends Section {
  readonly organization: string;
  readonly project: string;
  readonly place: Place;
  readonly served: readonly string[] | undefined;
}

/** The screens of the project that the page is about. */
function ProjectSection(props: ProjectProps) {
  const { organization, project, place, served, isFolded, onGo } = props;
  const links = useLinks();
  return (
    <div className={style["section"]}>
      <ProjectSwitch {...props} />
      <Entry
        icon="list"
        title="Logs"
        href={links.logs(organization, project)}
        isCurrent={place.at === "logs" || place.at === "trace"}
        isFolded={isFolded}
        onGo={onGo}
      />
      {isServed(served, "monitor") && (
        <Entry
          icon="chart"
          title="Monitor"
          href={links.monitor(organization, project)}
          isCurrent={place.at === "monitor"}
          isFolded={isFolded}
          onGo={onGo}
        />
      )}
      {isServed(served, "experiments") && (
        <Entry
          icon="flask"
          title="Experiments"
          href={links.experiments(organization, project)}
          isCurrent={place.at === "experiments" || place.at === "experiment"}
          isFolded={isFolded}
          onGo={onGo}
        />
      )}
      {isServed(served, "datasets") && (
        <Entry
          icon="database"
          title="Datasets"
          href={links.datasets(organization, project)}
          isCurrent={place.at === "datasets" || place.at === "dataset"}
          isFolded={isFolded}
          onGo={onGo}
        />
      )}
      <PageEntries within="project" {...props} />
    </div>
  );
}

interface OrganizationProps extends Section {
  readonly organization: string;
  readonly place: Place;
  readonly served: readonly string[] | undefined;
}

/** The screens of the organization that the page is about. */
function OrganizationSection({ organization, place, served, isFolded, onGo }: OrganizationProps) {
  const links = useLinks();
  return (
    <>
      {isServed(served, "home") && (
        <Entry
          icon="house"
          title="Home"
          href={links.home(organization)}
          isCurrent={place.at === "home"}
          isFolded={isFolded}
          onGo={onGo}
        />
      )}
      {isServed(served, "welcome") && (
        <Entry
          icon="send"
          title="Send traces"
          href={links.welcome(organization)}
          isCurrent={place.at === "welcome"}
          isFolded={isFolded}
          onGo={onGo}
        />
      )}
      {isServed(served, "query") && (
        <Entry
          icon="terminal"
          title="Query"
          href={links.query(organization)}
          isCurrent={place.at === "query"}
          isFolded={isFolded}
          onGo={onGo}
        />
      )}
    </>
  );
}

export function Rail(props: RailProps) {
  const { place, organization, served, isFolded, onGo } = props;
  const project = place.at === "welcome" ? "" : projectOf(place);
  return (
    <nav className={style["rail"]} aria-label="Screens">
      {props.session.organizations.length > 0 && (
        <div className={style["switch"]}>
          <OrganizationSwitch {...props} />
        </div>
      )}
      {organization !== null && <OrganizationSection {...{ organization, place, served, isFolded, onGo }} />}
      {organization !== null && project !== "" && isServed(served, "logs") && (
        <ProjectSection {...{ organization, project, place, served, isFolded, onGo }} />
      )}
      {organization !== null && (
        <PageEntries within="organization" project="" {...{ organization, place, served, isFolded, onGo }} />
      )}
      <PageEntries within="installation" organization="" project="" {...{ place, served, isFolded, onGo }} />
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
