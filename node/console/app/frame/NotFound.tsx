// What stands at addresses that this version has no page for.
import { ButtonLink } from "../design/Button";
import { useLinks } from "../lib/links";
import style from "./NotFound.module.css";

export function NotFound() {
  const links = useLinks();
  return (
    <div className={style["page"]}>
      <h1 tabIndex={-1}>There is no such page</h1>
      <p>The address may have a typing mistake, or belong to a later version of Assay.</p>
      <ButtonLink look="primary" href={links.start()}>
        Go home
      </ButtonLink>
    </div>
  );
}

export function NotServed() {
  return (
    <div className={style["page"]}>
      <h1 tabIndex={-1}>Not served by this version</h1>
      <p>The server that answers here does not serve this screen. The others can be used.</p>
    </div>
  );
}

export function NoOrganization({ name, start }: { readonly name: string; readonly start: string }) {
  return (
    <div className={style["page"]}>
      <h1 tabIndex={-1}>No such organization</h1>
      <p>
        {name === ""
          ? "You belong to no organization. An owner of one can add you."
          : `There is no organization “${name}”, or you do not belong to it. An owner of it can add you.`}
      </p>
      <ButtonLink look="primary" href={start}>
        Show your organizations
      </ButtonLink>
    </div>
  );
}
