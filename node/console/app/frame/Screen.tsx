// The screens by their places. Each is loaded when it is first shown.
import type { Session } from "../api/schema";
import { Button } from "../design/Button";
import { Empty } from "../design/Empty";
import { links, type Place } from "../routes";
import { later } from "./later";
import { NoOrganization, NotFound, NotServed } from "./NotFound";

function LoadFailed() {
  return (
    <Empty action={<Button onClick={() => window.location.reload()}>Load again</Button>}>
      The files of this page could not be loaded.
    </Empty>
  );
}

const failed = <LoadFailed />;
const SignIn = later(async () => (await import("../features/signin/screen")).SignInScreen, failed);
const Start = later(async () => (await import("../features/start/screen")).StartScreen, failed);
const Home = later(async () => (await import("../features/home/screen")).HomeScreen, failed);
const Welcome = later(async () => (await import("../features/welcome/screen")).WelcomeScreen, failed);
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

export function Screen({ place, session, served }: ScreenProps) {
  const isServed = (part: string): boolean => served === undefined || served.includes(part);
  switch (place.at) {
    case "signin":
      return <SignIn state={place.state} />;
    case "start":
      return session === undefined ? null : <Start session={session} />;
    case "home": {
      if (findOrganization(session, place.state.organization) === null) {
        return <NoOrganization name={place.state.organization} start={links.start()} />;
      }
      return isServed("home") ? <Home key={place.state.organization} state={place.state} /> : <NotServed />;
    }
    case "welcome": {
      const organization = findOrganization(session, place.state.organization);
      if (organization === null) return <NoOrganization name={place.state.organization} start={links.start()} />;
      return isServed("welcome") ? <Welcome state={place.state} organization={organization} /> : <NotServed />;
    }
    case "design":
      return <Design />;
    case "unknown":
      return <NotFound />;
  }
}
