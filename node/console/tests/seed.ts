// Plants the data of the flows through the public API: people, and the projects demo, big, wide and evil.
import { plantBig, plantWide } from "./support/bulk";
import { Api } from "./support/api";
import { plantDemo, type Demo } from "./support/demo";
import type { Environment } from "./support/env";
import { plantEvil } from "./support/evil";
import { listAt, textAt } from "./support/json";
import { plantSettings } from "./support/planted";

export interface Person {
  readonly id: string;
  readonly email: string;
  readonly key: string;
}

export interface Project {
  readonly id: string;
  readonly name: string;
}

export interface Seed {
  readonly organization: string;
  /** Ann owns the organization, Ben reads `demo`, Cy sees nothing. */
  readonly people: { readonly ann: Person; readonly ben: Person; readonly cy: Person };
  readonly demo: Demo;
  readonly big: Project;
  readonly wide: Project;
  readonly evil: Project;
  /** Added to the names of this run if the server was used before. */
  readonly suffix: string;
}

/** Rows of wide at first. What measures times adds more. */
export const WIDE_ROWS = 5000;

async function makeAccount(setup: Api, name: string): Promise<Person> {
  const invited = { invite_users: { service_accounts: [{ name, token_name: "console" }] } };
  const added = await setup.call("PATCH", "/v1/organization/members", invited);
  const user = listAt(added, "added_users")[0];
  return { id: textAt(user, "id"), email: textAt(user, "email"), key: textAt(user, "api_key") };
}

async function findAnn(api: Api): Promise<Person> {
  const me = await api.call("POST", "/api/self/me", {});
  return { id: textAt(me, "id"), email: textAt(me, "email"), key: api.key };
}

export async function makeProject(api: Api, name: string): Promise<Project> {
  const made = await api.call("POST", "/v1/project", { name });
  return { id: textAt(made, "id"), name: textAt(made, "name") };
}

/** Nothing on a server that has no such project yet, and else what no earlier run has added to its names. */
async function suffixOf(api: Api): Promise<string> {
  const found = listAt(await api.call("GET", "/v1/project?project_name=demo"), "objects");
  return found.length === 0 ? "" : `-${Date.now().toString(36)}`;
}

export async function plant(api: Api, environment: Environment): Promise<Seed> {
  const suffix = await suffixOf(api);
  const setup = new Api(api.base, environment.serviceToken);
  const organization = textAt(await api.call("GET", "/v1/organization"), "objects", 0, "name");
  const people = {
    ann: await findAnn(api),
    ben: await makeAccount(setup, `ben${suffix}`),
    cy: await makeAccount(setup, `cy${suffix}`),
  };
  const demo = await plantDemo(api, await makeProject(api, `demo${suffix}`));
  const grant = { object_type: "project", object_id: demo.id, user_id: people.ben.id, permission: "read" };
  await api.call("POST", "/v1/acl", grant);
  const big = await makeProject(api, `big${suffix}`);
  const wide = await makeProject(api, `wide${suffix}`);
  const evil = await makeProject(api, `evil${suffix}`);
  await plantBig(api, big, environment);
  await plantWide(api, wide, { from: 0, to: WIDE_ROWS });
  await plantEvil(api, evil);
  await plantSettings(api, demo.id, suffix);
  return { organization, people, demo, big, wide, evil, suffix };
}
