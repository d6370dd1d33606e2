// The dialog that deletes a credential.
import type { ReactNode } from "react";
import type { DeletedKind } from "../../../api/credentials";
import { Confirm } from "../../../design/Confirm";
import { toast } from "../../../design/Toast";
import { deleted } from "../queries";
import { Name } from "./Form";

interface DeletingProps {
  readonly organization: string;
  readonly kind: DeletedKind;
  readonly one: { readonly id: string; readonly name: string };
  /** What it is called, such as "key". */
  readonly noun: string;
  readonly onClose: () => void;
  /** What happens then, in whole sentences. */
  readonly children: ReactNode;
}

export function Deleting({ organization, kind, one, noun, onClose, children }: DeletingProps) {
  const confirm = async (): Promise<string | null> => {
    const wrong = await deleted(organization, kind, one.id);
    if (wrong === null) toast(`The ${noun} ${one.name} is deleted.`);
    return wrong;
  };
  return (
    <Confirm title={`Delete this ${noun}?`} action="Delete" onConfirm={confirm} onClose={onClose}>
      <Name name={one.name} />
      <p>{children}</p>
    </Confirm>
  );
}
