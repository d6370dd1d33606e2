// A group: the people and groups in it, the groups that it is in, and everybody whom it reaches.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { rightsQuery } from "../../../api/access";
import { closesCircle, innerOf, outerOf, reached } from "../../../api/nesting";
import { byName, changeGroup, faultOf, memberDetail, type Group, type Member } from "../../../api/people";
import { Button } from "../../../design/Button";
import { toast } from "../../../design/Toast";
import { byId, membersOf } from "../people";
import style from "../settings.module.css";
import { writePeople } from "../url";
import { ItemPage } from "./Item";
import { Adder } from "./Shared";

interface GroupPageProps {
  readonly organization: string;
  readonly person: string;
  readonly group: Group;
  readonly groups: readonly Group[];
  readonly members: readonly Member[];
}

interface PartProps {
  readonly title: string;
  readonly none: string;
  readonly label: string;
  readonly mayUpdate: boolean;
  readonly shown: readonly { readonly id: string; readonly name: string; readonly detail: string; readonly href?: string }[];
  readonly choices: readonly { readonly id: string; readonly name: string }[];
  readonly onChange: (how: "add" | "remove", id: string) => Promise<string | null>;
}

/** The members of one kind, which can be added and removed. */
function Part({ title, none, label, mayUpdate, shown, choices, onChange }: PartProps) {
  const take = async (id: string, name: string): Promise<void> => {
    const fault = await onChange("remove", id);
    toast(fault ?? `${name} is not in the group any more.`, fault !== null);
  };
  return (
    <section className={style["part"]} aria-label={title}>
      <h2>
        {title} <span className={style["soft"]}>{shown.length}</span>
      </h2>
      {shown.length === 0 ? (
        <p className={style["soft"]}>{none}</p>
      ) : (
        <ul className={style["list"]} aria-label={title}>
          {shown.map(({ id, name, detail, href }) => (
            <li key={id}>
              <span>
                {href === undefined ? name : <a href={href}>{name}</a>} <span className={style["soft"]}>{detail}</span>
              </span>
              {mayUpdate && (
                <Button look="quiet" aria-label={`Remove ${name}`} onClick={() => void take(id, name)}>
                  Remove
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
      {mayUpdate && <Adder label={label} choices={choices} onAdd={(id) => onChange("add", id)} />}
    </section>
  );
}

/** Everybody in the group, also through groups in it. */
function Everybody({ group, groups, members }: Pick<GroupPageProps, "group" | "groups" | "members">) {
  const found = useMemo(() => membersOf(group, groups), [group, groups]);
  const [people, known] = [byId(members), byId(groups)];
  const nameOf = (id: string): string => people.get(id)?.name ?? id;
  const through = found.filter((one) => one.through.length > 0);
  if (through.length === 0) return null;
  return (
    <section className={style["part"]} aria-label="Through groups">
      <h2>
        Through groups <span className={style["soft"]}>{through.length}</span>
      </h2>
      <ul className={style["list"]} aria-label="Through groups">
        {through
          .map((one) => ({ id: one.user, name: nameOf(one.user), way: one.through.map((id) => known.get(id)?.name ?? id) }))
          .sort(byName)
          .map(({ id, name, way }) => (
            <li key={id}>
              <span>{name}</span>
              <span className={style["soft"]}>in {[...way].reverse().join(", in ")}</span>
            </li>
          ))}
      </ul>
    </section>
  );
}

const isNamed = <One,>(one: One | undefined): one is One => one !== undefined;

export function GroupPage({ organization, person, group, groups, members }: GroupPageProps) {
  const rights = useQuery(rightsQuery(organization, "group", group.id, person)).data ?? [];
  const nested = useMemo(() => groups.map((one) => ({ id: one.id, inner: one.groups })), [groups]);
  const [people, known, next] = [byId(members), byId(groups), innerOf(nested)];
  const mayUpdate = rights.includes("update");
  const hrefOf = (id: string): string => writePeople(organization, "groups", { open: id, filter: "" });
  const change = (kind: "users" | "groups") => async (how: "add" | "remove", id: string): Promise<string | null> => {
    if (kind === "groups" && how === "add" && closesCircle(id, group.id, next)) {
      return `${known.get(id)?.name ?? "This group"} has ${group.name} in it. Two groups cannot be in each other.`;
    }
    return faultOf(changeGroup(organization, group.id, how, kind, [id]));
  };
  const outer = [...reached(group.id, outerOf(nested)).keys()].map((id) => known.get(id)).filter(isNamed).sort(byName);
  return (
    <ItemPage what="group" organization={organization} item={group} all={groups} mayUpdate={mayUpdate} mayDelete={rights.includes("delete")}>
      <div className={style["columns"]}>
        <Part
          title="People"
          none="Nobody is in this group directly."
          label="Person"
          mayUpdate={mayUpdate}
          shown={group.users
            .map((id) => people.get(id) ?? { id, name: id, email: "", isService: false, created: null })
            .sort(byName)
            .map((one) => ({ id: one.id, name: one.name, detail: memberDetail(one) }))}
          choices={members.filter(({ id }) => !group.users.includes(id)).sort(byName)}
          onChange={change("users")}
        />
        <Part
          title="Groups"
          none="No group is in this group."
          label="Group"
          mayUpdate={mayUpdate}
          shown={group.groups.map((id) => ({ id, name: known.get(id)?.name ?? id, detail: "", href: hrefOf(id) })).sort(byName)}
          choices={groups.filter(({ id }) => id !== group.id && !group.groups.includes(id)).sort(byName)}
          onChange={change("groups")}
        />
        <Everybody group={group} groups={groups} members={members} />
        {outer.length > 0 && (
          <section className={style["part"]} aria-label="In groups">
            <h2>
              In groups <span className={style["soft"]}>{outer.length}</span>
            </h2>
            <ul className={style["list"]} aria-label="In groups">
              {outer.map(({ id, name }) => (
                <li key={id}>
                  <a href={hrefOf(id)}>{name}</a>
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </ItemPage>
  );
}
