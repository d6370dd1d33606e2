// The screens by their places. Each is loaded when it is first shown.
import type { Session } from "../api/schema";
import type { ReactNode } from "react";
import { links, organizationOf, type Place } from "../routes";
import { isServed } from "./served";
import { failed, later } from "./later";
import { NoOrganization, NotFound, NotServed } from "./NotFound";
import { PageScreen } from "./PageScreen";
import { ComparePlace, LogsPlace, MonitorPlace, ToLogs, TracePlace } from "./ProjectScreens";

const SignIn = later(async () => (await import("../features/signin/screen")).SignInScreen, failed);
const Start = later(async () => (await import("../features/start/screen")).StartScreen, failed);
const Home = later(async () => (await import("../features/home/screen")).HomeScreen, failed);
const Welcome = later(async () => (await import("../features/welcome/screen")).WelcomeScreen, failed);
const Query = later(async () => (await import("../features/query/screen")).QueryScreen, failed);
const Datasets = later(async () => (await import("../features/datasets/list")).DatasetsScreen, failed);
const Dataset = later(async () => (await import("../features/datasets/screen")).DatasetScreen, failed);
const Experiments = later(async () => (await import("../features/experiments/screen")).ExperimentsScreen, failed);
const ObjectPage = later(async () => (await import("../features/object/screen")).ObjectScreen, failed);
const Design = import.meta.env.DEV
  ? later(async () => (await import("../design/Design")).DesignPage, failed)
  : NotFound;

interface ScreenProps {
  readonly place: Place;
  readonly session: Session | undefined;
  /** The parts that the server serves, once they are known. */
  readonly served: readonly string[] | undefined;
}

/** The organization that a screen is about: the named one, or the first if none is named. */
export function findOrganization(session: Session | undefined, name: string): Session["organizations"][number] | null {
  const organizations = session?.organizations ?? [];
  return (name === "" ? organizations[0] : organizations.find((one) => one.name === name)) ?? null;
}

/** Shows a screen of an organization that the person belongs to, if the server serves it. */
function inOrganization(
  { place, session, served }: ScreenProps,
  part: string,
  shown: (session: Session, organization: Session["organizations"][number]) => ReactNode,
): ReactNode {
  const name = organizationOf(place);
  const organization = findOrganization(session, name);
  if (session === undefined || organization === null) return <NoOrganization name={name} start={links.start()} />;
  return isServed(served, part) ? shown(session, organization) : <NotServed />;
}

export function Screen(props: ScreenProps) {
  const { place, session } = props;
  switch (place.at) {
    case "signin":
      return <SignIn state={place.state} />;
    case "start":
      return session === undefined ? null : <Start session={session} />;
    case "home":
      return inOrganization(props, "home", () => <Home key={place.state.organization} state={place.state} />);
    case "welcome":
      return inOrganization(props, "welcome", (_, organization) => (
        <Welcome state={place.state} organization={organization} />
      ));
    case "project":
      return inOrganization(props, "logs", () => <ToLogs {...place.state} />);
    case "logs":
      return inOrganization(props, "logs", (signedIn) => <LogsPlace state={place.state} session={signedIn} />);
    case "trace":
      return inOrganization(props, "trace", () => <TracePlace state={place.state} />);
    case "monitor":
      return inOrganization(props, "monitor", () => <MonitorPlace state={place.state} />);
    case "query":
      return inOrganization(props, "query", (_, organization) => (
        <Query state={place.state} organization={organization} />
      ));
    case "datasets":
      return inOrganization(props, "datasets", () => <Datasets state={place.state} />);
    case "dataset":
      return inOrganization(props, "datasets", () => <Dataset key={place.state.name} state={place.state} />);
    case "object":
      return inOrganization(props, "object", () => <ObjectPage state={place.state} />);
    case "experiments":
      return inOrganization(props, "experiments", () => <Experiments state={place.state} />);
    case "experiment":
      return inOrganization(props, "experiments", () => <ComparePlace state={place.state} />);
    case "page":
      if (place.page.within === "installation") {
        return session === undefined ? null : <PageScreen place={place} session={session} />;
      }
      return inOrganization(props, place.page.id, (signedIn) => <PageScreen place={place} session={signedIn} />);
    case "design":
      return <Design />;
    case "unknown":
      return <NotFound />;
  }
}
