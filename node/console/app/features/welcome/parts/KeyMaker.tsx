// Makes a key and shows it this once.
import { useState, type FormEvent } from "react";
import { problemOf } from "../../../lib/errors";
import type { MadeKey } from "../../../api/schema";
import { Button } from "../../../design/Button";
import { Copy } from "../../../design/Copy";
import { Field } from "../../../design/Field";
import { makeKey } from "../queries";
import style from "./KeyMaker.module.css";

export function KeyMaker({ organization }: { readonly organization: string }) {
  const [made, setMade] = useState<MadeKey | null>(null);
  const [name, setName] = useState("first-trace");
  const [fault, setFault] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (isSending) return;
    if (name.trim() === "") return setFault("Enter a name first.");
    setFault(null);
    setSending(true);
    try {
      setMade(await makeKey(organization, name.trim()));
    } catch (error) {
      setFault(problemOf(error, 0).text);
    } finally {
      setSending(false);
    }
  };
  if (made !== null) {
    return (
      <div className={style["made"]} role="status">
        <p>
          This is the key “{made.name}”. It is shown only now: copy it before you leave this page.
        </p>
        <p className={style["key"]}>
          <code>{made.key}</code>
          <Copy text={made.key} what="the key" title="Copy" />
        </p>
      </div>
    );
  }
  return (
    <form className={style["form"]} onSubmit={(event) => void submit(event)} noValidate>
      <Field
        label="Name of the key"
        name="key-name"
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        fault={fault}
      />
      <Button type="submit" aria-disabled={isSending}>
        Make a key
      </Button>
    </form>
  );
}
