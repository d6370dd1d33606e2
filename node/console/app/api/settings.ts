// What a section of the settings is given.
import type { PagePlace } from "../lib/pages";
import type { Organization, Session } from "./schema";

export interface SectionProps {
  /** The address: its first segment after the page's word is the section. */
  readonly place: PagePlace;
  readonly session: Session;
  readonly organization: Organization;
}
