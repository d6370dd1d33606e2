// The address that names an object by its type and id, as SDKs print it.
import { isReserved, organizationAddress, textParameter, type Codec } from "../../lib/address";

export interface ObjectState {
  readonly organization: string;
  readonly type: string;
  readonly objectId: string;
  /** The id of a row in the object; empty for the object itself. */
  readonly row: string;
}

export const objectUrl: Codec<ObjectState> = {
  read: ({ segments, rawFirst, query }) => {
    const [organization, word, ...rest] = segments;
    if (organization === undefined || word !== "object" || rest.length > 0 || isReserved(rawFirst)) return null;
    return {
      organization,
      type: textParameter(query, "object_type"),
      objectId: textParameter(query, "object_id"),
      row: textParameter(query, "id"),
    };
  },
  write: ({ organization, type, objectId, row }) =>
    organizationAddress(organization, ["object"], [
      ["object_type", type, ""],
      ["object_id", objectId, ""],
      ["id", row, ""],
    ]),
};
