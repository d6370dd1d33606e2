// Gives many rows a score, in the name of the person.
import { queryOptions } from "@tanstack/react-query";
import { call } from "../../api/client";
import { readScoreDefinitions } from "../../api/history";
import { isRecord } from "../../api/narrow";
import { cache, sessionQuery } from "../../api/queries";
import { columns } from "../../api/query";
import { chunksOf } from "../../api/datasets";
import { idOf, readRows, type Place } from "./bulk";

/** The kinds of scores that people give by hand. */
const GIVEN: ReadonlySet<string> = new Set(["slider", "categorical"]);

export const givenScoresQuery = ({ organization, projectId }: Place) =>
  queryOptions({
    queryKey: ["given scores", organization, projectId],
    queryFn: async ({ signal }) => {
      const defined = await readScoreDefinitions(organization, projectId, signal);
      return defined.filter((one) => GIVEN.has(one.type));
    },
    staleTime: 60_000,
  });

/** A row with the value that it gets; null takes the score away. */
interface Given {
  readonly id: string;
  readonly value: number | null;
}

async function write({ organization, projectId }: Place, name: string, given: readonly Given[]): Promise<void> {
  const userId = cache.getQueryData(sessionQuery.queryKey)?.user.id;
  const metadata = userId === undefined ? {} : { metadata: { user_id: userId } };
  for (const chunk of chunksOf(given)) {
    const feedback = chunk.map(({ id, value }) => ({ id, source: "app", ...metadata, scores: { [name]: value } }));
    await call("POST", `/v1/project_logs/${projectId}/feedback`, { organization, body: { feedback } });
  }
}

/** Gives rows a score. Returns how many, and how to give back what each had before. */
export async function giveScore(place: Place, ids: readonly string[], name: string, value: number) {
  const rows = await readRows(place, "id", ids, columns("id", "scores"));
  const before = rows.map((row): Given => {
    const scores = row["scores"];
    const had = isRecord(scores) ? scores[name] : null;
    return { id: idOf(row), value: typeof had === "number" ? had : null };
  });
  await write(place, name, before.map(({ id }) => ({ id, value })));
  return { count: before.length, undo: () => write(place, name, before) };
}
