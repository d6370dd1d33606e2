// Time travel on a screen: a band while the past is shown, and the dialog that chooses another version.
import { lazily } from "./Lazily";

export interface VersionControlProps {
  /** The version that is shown, in the form of `lib/version`; empty for now. */
  readonly version: string;
  /** The newest transaction that was read, which the dialog offers; null without one. */
  readonly newest?: string | null;
  /** Whether the dialog is open. */
  readonly isChoosing: boolean;
  readonly onChoosing: (isChoosing: boolean) => void;
  readonly onVersion: (version: string) => void;
}

const Parts = lazily(async () => (await import("./VersionControlParts")).VersionControlParts);

export function VersionControl(props: VersionControlProps) {
  return props.version === "" && !props.isChoosing ? null : <Parts {...props} />;
}
