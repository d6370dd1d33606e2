// The way in: it leads to the only organization, or lists those there are.
import { useEffect } from "react";
import type { Session } from "../../api/schema";
import { Empty } from "../../design/Empty";
import { Icon } from "../../design/Icon";
import { useLinks } from "../../lib/links";
import { navigate } from "../../lib/router";
import style from "./screen.module.css";

export function StartScreen({ session }: { readonly session: Session }) {
  const links = useLinks();
  const { organizations } = session;
  const only = organizations.length === 1 ? organizations[0] : undefined;
  useEffect(() => {
    if (only !== undefined) navigate(links.home(only.name), "replace");
  }, [only, links]);
  if (only !== undefined) return null;
  return (
    <div className={style["screen"]}>
      <h1 tabIndex={-1}>Organizations</h1>
      {organizations.length === 0 ? (
        <Empty>You are signed in but belong to no organization. An owner of one can add you.</Empty>
      ) : (
        <ul className={style["organizations"]}>
          {organizations.map((organization) => (
            <li key={organization.id}>
              <a href={links.home(organization.name)}>
                {organization.name}
                <Icon name="right" />
              </a>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
