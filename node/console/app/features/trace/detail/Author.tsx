// Who wrote something, from where, and when.
import { useQuery } from "@tanstack/react-query";
import { now, fullMoment, shortMoment } from "../../../lib/time";
import { preferences } from "../../../lib/preferences";
import style from "./Detail.module.css";
import { sourceWords } from "./changes";
import { userNamesQuery } from "./queries";

interface AuthorProps {
  readonly organization: string;
  readonly userId: string;
  readonly source: string;
  readonly at: Date | null;
}

export function Author({ organization, userId, source, at }: AuthorProps) {
  const names = useQuery({ ...userNamesQuery(organization), enabled: userId !== "" });
  const name = names.data === undefined ? "" : (names.data.get(userId) ?? userId);
  const words = [name, sourceWords(source), shortMoment(at, now.value, preferences.value.zone)];
  return (
    <span className={style["author"]} title={fullMoment(at)}>
      {words.filter((word) => word !== "").join(", ")}
    </span>
  );
}
