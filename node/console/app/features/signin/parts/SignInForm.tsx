// The form that signs in, on its own screen and in the dialog over a page whose session ended.
import { useRef, useState, type FormEvent } from "react";
import type { About, Session } from "../../../api/schema";
import { Button, ButtonLink } from "../../../design/Button";
import { Field } from "../../../design/Field";
import { providerAddress, refusal, signIn } from "../queries";
import style from "./SignInForm.module.css";

/** The name of an identity provider that people know: its host. */
function issuerName(issuer: string): string {
  try {
    return new URL(issuer).host || issuer;
  } catch {
    return issuer;
  }
}

interface SignInFormProps {
  readonly about: About | undefined;
  /** Where the identity provider leads back to. */
  readonly next: string;
  /** Whether the identity provider opens in another tab, so that this page stays as it is. */
  readonly isOverPage: boolean;
  readonly onSignedIn: (session: Session) => void;
}

export function SignInForm({ about, next, isOverPage, onSignedIn }: SignInFormProps) {
  const form = useRef<HTMLFormElement>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const input = (): HTMLInputElement | null => form.current?.querySelector("input") ?? null;
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const field = input();
    const key = field?.value.trim() ?? "";
    if (isSending) return;
    setFault(key === "" ? "Enter a key first." : null);
    if (field === null || key === "") return field?.focus();
    setSending(true);
    try {
      const session = await signIn(key);
      field.value = "";
      onSignedIn(session);
    } catch (error) {
      setFault(refusal(error));
      field.focus();
      field.select();
    } finally {
      setSending(false);
    }
  };
  const issuer = about?.issuer ?? null;
  return (
    <div className={style["form"]}>
      {issuer !== null && (
        <>
          <ButtonLink look="primary" href={providerAddress(next)} {...(isOverPage ? { target: "_blank" } : {})}>
            Continue with {issuerName(issuer)}
          </ButtonLink>
          <p className={style["or"]}>or with a key</p>
        </>
      )}
      <form ref={form} className={style["form"]} onSubmit={(event) => void submit(event)} noValidate>
        <Field
          label="API key or service token"
          type="password"
          name="key"
          autoComplete="off"
          spellCheck={false}
          autoFocus
          fault={fault}
          hint="The key starts a session in this browser. The page does not keep the key."
        />
        <Button type="submit" look={issuer === null ? "primary" : "plain"} aria-disabled={isSending}>
          {isSending ? "Signing in" : "Sign in"}
        </Button>
      </form>
    </div>
  );
}
