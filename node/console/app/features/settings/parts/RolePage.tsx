// A role: its permissions by kinds of objects, and the roles in it.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { kindTitle, permissionWords, rightsQuery } from "../../../api/access";
import { closesCircle, innerOf } from "../../../api/nesting";
import { byName, changeRole, faultOf, toggled, type Granted, type Role } from "../../../api/people";
import { Button } from "../../../design/Button";
import { toast } from "../../../design/Toast";
import { draftOf, roleChange, throughRoles, type RoleDraft } from "../people";
import style from "../settings.module.css";
import { ItemPage } from "./Item";
import { RoleGrid } from "./RoleGrid";
import { Checks } from "./Shared";

interface RolePageProps {
  readonly organization: string;
  readonly person: string;
  readonly role: Role;
  readonly roles: readonly Role[];
}

const words = ({ permission, kind }: Granted): string =>
  `${permissionWords(permission)} ${kind === null ? "everything" : `(${kindTitle(kind).toLowerCase()})`}`;

interface ChangesProps {
  readonly organization: string;
  readonly role: Role;
  readonly roles: readonly Role[];
  readonly draft: RoleDraft;
  readonly onUndo: () => void;
}

/** What would change, and the button that does it. */
function Changes({ organization, role, roles, draft, onUndo }: ChangesProps) {
  const [fault, setFault] = useState<string | null>(null);
  const change = roleChange(role, draft);
  const nameOf = (id: string): string => roles.find((one) => one.id === id)?.name ?? id;
  const lines = [
    ...change.added.map((one) => `+ ${words(one)}`),
    ...change.addedRoles.map((id) => `+ role ${nameOf(id)}`),
    ...change.removed.map((one) => `− ${words(one)}`),
    ...change.removedRoles.map((id) => `− role ${nameOf(id)}`),
  ];
  if (lines.length === 0) return null;
  const save = async (): Promise<void> => {
    const failure = await faultOf(changeRole(organization, role.id, change));
    setFault(failure);
    if (failure === null) toast(`The role ${role.name} is changed.`);
  };
  return (
    <section className={style["part"]} aria-label="Changes">
      <ul className={style["list"]} aria-label="Changes">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      <p className={style["fault"]} role="alert">
        {fault}
      </p>
      <div className={style["add"]}>
        <Button look="primary" onClick={() => void save()}>
          {lines.length === 1 ? "Save 1 change" : `Save ${lines.length} changes`}
        </Button>
        <Button onClick={onUndo}>Undo</Button>
      </div>
    </section>
  );
}

export function RolePage({ organization, person, role, roles }: RolePageProps) {
  const rights = useQuery({ ...rightsQuery(organization, "role", role.id, person), enabled: !role.isBuiltIn }).data ?? [];
  const [edited, setEdited] = useState<RoleDraft | null>(null);
  const draft = edited ?? draftOf(role);
  const mayUpdate = !role.isBuiltIn && rights.includes("update");
  const next = useMemo(() => innerOf(roles.map(({ id, roles: inner }) => ({ id, inner }))), [roles]);
  const through = throughRoles(role, [...draft.roles], roles);
  const fit = roles.filter(({ id }) => draft.roles.has(id) || (mayUpdate && !closesCircle(id, role.id, next)));
  return (
    <ItemPage what="role" organization={organization} item={role} all={roles} mayUpdate={mayUpdate} mayDelete={!role.isBuiltIn && rights.includes("delete")}>
      {role.isBuiltIn && <p className={style["soft"]}>This role belongs to the system, so nobody can change it.</p>}
      <RoleGrid
        chosen={draft.permissions}
        through={through}
        isReadOnly={!mayUpdate}
        onToggle={(key) => setEdited({ ...draft, permissions: toggled(draft.permissions, key) })}
      />
      {fit.length > 0 && (
        <Checks
          legend="Roles in this role"
          choices={[...fit].sort(byName)}
          chosen={draft.roles}
          isDisabled={!mayUpdate}
          onToggle={(id) => setEdited({ ...draft, roles: toggled(draft.roles, id) })}
        />
      )}
      <Changes organization={organization} role={role} roles={roles} draft={draft} onUndo={() => setEdited(null)} />
    </ItemPage>
  );
}
