// The settings of an organization: their sections, each loaded when it is first shown.
import type { ComponentType } from "react";
import type { SectionProps } from "../api/settings";
import { ButtonLink } from "../design/Button";
import { classes } from "../design/classes";
import { Empty } from "../design/Empty";
import { SectionPage } from "../design/SectionPage";
import { useLinks } from "../lib/links";
import { navigate } from "../lib/router";
import { failed, later } from "./later";
import type { PageProps } from "./PageScreen";
import style from "./SettingsScreens.module.css";

interface SettingsPart {
  /** The word of the section in the address. */
  readonly id: string;
  readonly title: string;
  readonly group: string;
  readonly Shown: ComponentType<SectionProps>;
}

type Load = () => Promise<{ readonly Section: ComponentType<SectionProps> }>;

const part = (group: string, id: string, title: string, load: Load): SettingsPart => ({
  id,
  title,
  group,
  Shown: later(async () => (await load()).Section, failed),
});

const PARTS: readonly SettingsPart[] = [
  part("People", "members", "Members", () => import("../features/settings/members")),
  part("People", "groups", "Groups", () => import("../features/settings/groups")),
  part("People", "roles", "Roles", () => import("../features/settings/roles")),
  part("People", "access", "Access", () => import("../features/access/screen")),
  part("Credentials", "keys", "API keys", () => import("../features/credentials/keys")),
  part("Credentials", "tokens", "Service tokens", () => import("../features/credentials/tokens")),
  part("Credentials", "secrets", "AI secrets", () => import("../features/credentials/secrets")),
  part("Credentials", "env", "Environment variables", () => import("../features/credentials/env")),
  part("Oversight", "audit", "Audit log", () => import("../features/audit/screen")),
  part("Oversight", "usage", "Usage", () => import("../features/usage/usage")),
  part("Oversight", "budgets", "Budgets", () => import("../features/usage/budgets")),
  part("Oversight", "retention", "Retention", () => import("../features/usage/retention")),
];

const GROUPS = [...new Set(PARTS.map((one) => one.group))];

interface SectionsProps {
  readonly chosen: string;
  readonly addressOf: (section: string) => string;
}

function SectionList({ chosen, addressOf }: SectionsProps) {
  return (
    <nav className={style["list"]} aria-label="Settings">
      {GROUPS.map((group) => (
        <section key={group} aria-label={group}>
          <h2>{group}</h2>
          <ul>
            {PARTS.filter((one) => one.group === group).map(({ id, title }) => (
              <li key={id}>
                <a
                  href={addressOf(id)}
                  className={classes(style["entry"], id === chosen && style["current"])}
                  aria-current={id === chosen ? "page" : undefined}
                >
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

function SectionSelect({ chosen, addressOf }: SectionsProps) {
  return (
    <label className={style["select"]}>
      <span>Section</span>
      <select value={chosen} onChange={(event) => navigate(addressOf(event.currentTarget.value), "push")}>
        {GROUPS.map((group) => (
          <optgroup key={group} label={group}>
            {PARTS.filter((one) => one.group === group).map(({ id, title }) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

export function SettingsScreen({ place, session }: PageProps) {
  const links = useLinks();
  const chosen = place.rest[0] ?? "members";
  const shown = PARTS.find((one) => one.id === chosen);
  const organization = session.organizations.find((one) => one.name === place.organization);
  if (organization === undefined) return null;
  const addressOf = (section: string): string => links.page("settings", place.organization, "", [section]);
  return (
    <div className={style["screen"]}>
      <SectionList chosen={chosen} addressOf={addressOf} />
      <SectionSelect chosen={chosen} addressOf={addressOf} />
      <div className={style["section"]}>
        {shown === undefined ? (
          <SectionPage title="Settings">
            <Empty action={<ButtonLink href={addressOf("members")}>Members</ButtonLink>}>
              The settings have no section “{chosen}”.
            </Empty>
          </SectionPage>
        ) : (
          <shown.Shown key={shown.id} {...{ place, session, organization }} />
        )}
      </div>
    </div>
  );
}
