// The section of the settings about the budgets of the gateway: their limits, and how much of them is used.
import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { askToSignIn } from "../../api/gate";
import { readingOf, until } from "../../api/queries";
import type { SectionProps } from "../../api/settings";
import { Button } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { Loaded } from "../../design/Loaded";
import { SectionPage } from "../../design/SectionPage";
import { Skeleton } from "../../design/Skeleton";
import { toast } from "../../design/Toast";
import { scopeText, type Budget } from "./budget";
import { budgetsQuery, budgetUsageQuery, choicesQuery, deleteBudget } from "./budgetQueries";
import { BudgetDialog } from "./parts/BudgetDialog";
import { BudgetItem } from "./parts/BudgetItem";
import { DeleteDialog } from "./parts/Forms";
import style from "./section.module.css";

type Doing = { readonly kind: "edit"; readonly budget: Budget | null } | { readonly kind: "delete"; readonly budget: Budget };

/** The names of what budgets are about, by their ids; null while they are read. */
function useNames(organization: string, budgets: readonly Budget[]): ReadonlyMap<string, string> | null {
  const types = [...new Set(budgets.map(({ scope }) => scope.type))].filter((type) => type !== "org" && type !== "model");
  const found = useQueries({ queries: types.map((type) => choicesQuery(organization, type)) });
  return found.some(({ isLoading }) => isLoading) ? null : new Map(found.flatMap(({ data = [] }) => data.map(({ id, name }) => [id, name])));
}

interface DoingsProps extends Pick<SectionProps, "organization"> {
  readonly doing: Doing;
  readonly wordsOf: (budget: Budget) => string;
  readonly onClose: () => void;
}

function Doings({ doing, organization, wordsOf, onClose }: DoingsProps) {
  const { budget } = doing;
  const words = budget === null ? "" : wordsOf(budget);
  if (doing.kind === "edit") return <BudgetDialog {...{ organization, words, onClose }} before={budget} />;
  const drop = async (): Promise<void> => {
    await deleteBudget(organization.name, doing.budget.id);
    toast("The budget is deleted.");
  };
  return (
    <DeleteDialog title="Delete this budget?" onClose={onClose} onDelete={drop}>
      {words} will have no such limit any more, and what was counted is lost.
    </DeleteDialog>
  );
}

export function Section({ organization }: SectionProps) {
  const query = useQuery(budgetsQuery(organization.name));
  const budgets = query.data ?? [];
  const ids = useMemo(() => budgets.map(({ id }) => id), [query.data]);
  const usage = useQuery(budgetUsageQuery(organization.name, ids));
  const names = useNames(organization.name, budgets);
  const [doing, setDoing] = useState<Doing | null>(null);
  const add = <Button icon="plus" onClick={() => setDoing({ kind: "edit", budget: null })}>New budget</Button>;
  const wordsOf = ({ scope }: Budget): string => scopeText(scope, names?.get(scope.id) ?? null);
  return (
    <SectionPage
      title="Budgets"
      note="A budget limits the model calls that go through the gateway."
      actions={budgets.length > 0 ? add : undefined}
    >
      <Loaded reading={until(names !== null, readingOf(query))} skeleton={<Skeleton lines={[[40], [60], [40], [60]]} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(found) =>
          found.length === 0 ? (
            <Empty action={add}>No budget limits the model calls that go through the gateway.</Empty>
          ) : (
            <ul className={style["list"]} aria-label="Budgets">
              {found.map((budget) => (
                <BudgetItem
                  key={budget.id}
                  {...{ budget }}
                  words={wordsOf(budget)}
                  usage={usage.data?.get(budget.id) ?? null}
                  onEdit={() => setDoing({ kind: "edit", budget })}
                  onDelete={() => setDoing({ kind: "delete", budget })}
                />
              ))}
            </ul>
          )
        }
      </Loaded>
      {usage.error !== null && budgets.length > 0 && (
        <p className={style["fault"]} role="alert">
          The usage of the budgets could not be read: {usage.error.message}
        </p>
      )}
      {doing !== null && <Doings {...{ doing, organization, wordsOf }} onClose={() => setDoing(null)} />}
    </SectionPage>
  );
}
