// The address of the way in, which has no state.
import { screenAddress, type Codec } from "../../lib/address";

export const startUrl: Codec<Record<never, never>> = {
  read: ({ segments }) => (segments.length === 0 ? {} : null),
  write: () => screenAddress([], []),
};
