// Shows a new key this once. Nothing keeps it: it is gone with the dialog.
import type { MadeKey } from "../../../api/schema";
import { Button } from "../../../design/Button";
import { Copy } from "../../../design/Copy";
import { Dialog, DialogActions } from "../../../design/Dialog";
import style from "./Form.module.css";

interface MadeProps {
  readonly made: MadeKey;
  /** What was made, such as "API key". */
  readonly what: string;
  readonly onClose: () => void;
}

export function Made({ made, what, onClose }: MadeProps) {
  return (
    <Dialog title={`New ${what}`} onClose={onClose}>
      <div className={style["made"]}>
        <p>
          This is “{made.name}”. It is shown only now: copy it before you close this dialog.
        </p>
        <div className={style["key"]}>
          <code aria-label={what}>{made.key}</code>
          <Copy text={made.key} what={`the ${what}`} title="Copy" />
        </div>
      </div>
      <DialogActions>
        <Button look="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </Dialog>
  );
}
