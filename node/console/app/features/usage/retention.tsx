// The section of the settings about retention: for how long rows are kept, and what a rule would delete.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { askToSignIn } from "../../api/gate";
import { projectsQuery, readingOf, until } from "../../api/queries";
import type { SectionProps } from "../../api/settings";
import { Button } from "../../design/Button";
import { Chip } from "../../design/Chip";
import { Empty } from "../../design/Empty";
import { Icon } from "../../design/Icon";
import { Loaded } from "../../design/Loaded";
import { Menu } from "../../design/Menu";
import { SectionPage } from "../../design/SectionPage";
import { Skeleton } from "../../design/Skeleton";
import { toast } from "../../design/Toast";
import { DeleteDialog } from "./parts/Forms";
import { RuleDialog } from "./parts/RuleDialog";
import { deleteRule, rulesQuery } from "./retentionQueries";
import { outdone, sentenceOf, type Rule } from "./rules";
import style from "./section.module.css";

type Doing = { readonly kind: "edit"; readonly rule: Rule | null } | { readonly kind: "delete"; readonly rule: Rule };

interface RulesProps {
  readonly rules: readonly Rule[];
  readonly wordsOf: (rule: Rule) => string;
  readonly onDo: (doing: Doing) => void;
}

function Rules({ rules, wordsOf, onDo }: RulesProps) {
  const without = outdone(rules);
  return (
    <ul className={style["list"]} aria-label="Rules of retention">
      {rules.map((rule) => {
        const words = wordsOf(rule);
        return (
          <li key={rule.id} className={style["item"]} aria-label={words}>
            <div className={style["title"]}>
              <b>{words}</b>
              {without.has(rule.id) && <Chip tone="warn">Without effect: a shorter rule counts</Chip>}
            </div>
            <Menu
              label={`Actions of the rule “${words}”`}
              isAlone
              button={<Icon name="more" />}
              items={[
                { id: "edit", title: "Edit", run: () => onDo({ kind: "edit", rule }) },
                { id: "delete", title: "Delete", run: () => onDo({ kind: "delete", rule }) },
              ]}
            />
          </li>
        );
      })}
    </ul>
  );
}

export function Section({ organization: { name: organization } }: SectionProps) {
  const query = useQuery(rulesQuery(organization));
  const named = useQuery(projectsQuery(organization));
  const projects = named.data?.projects ?? [];
  const [doing, setDoing] = useState<Doing | null>(null);
  const close = (): void => setDoing(null);
  const rules = query.data ?? [];
  const wordsOf = (rule: Rule): string =>
    sentenceOf(rule, rule.project === null ? null : (projects.find(({ id }) => id === rule.project)?.name ?? rule.project));
  const add = <Button icon="plus" onClick={() => setDoing({ kind: "edit", rule: null })}>New rule</Button>;
  return (
    <SectionPage
      title="Retention"
      note="Rows are kept for good, unless a rule deletes them. A row is as old as its time of creation, which clients may set. Rules are carried out about once an hour."
      actions={rules.length > 0 ? add : undefined}
    >
      <Loaded reading={until(!named.isLoading, readingOf(query))} skeleton={<Skeleton lines={[[50], [44]]} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(found) =>
          found.length === 0 ? <Empty action={add}>No rule deletes rows of this organization.</Empty> : <Rules rules={found} wordsOf={wordsOf} onDo={setDoing} />
        }
      </Loaded>
      {doing?.kind === "edit" && (
        <RuleDialog organization={organization} projects={projects} rules={rules} before={doing.rule} onClose={close} />
      )}
      {doing?.kind === "delete" && (
        <DeleteDialog
          title="Delete this rule?"
          onClose={close}
          onDelete={async () => {
            await deleteRule(organization, doing.rule);
            toast("The rule is deleted.");
          }}
        >
          “{wordsOf(doing.rule)}” will not be carried out any more. What it has deleted does not come back.
        </DeleteDialog>
      )}
    </SectionPage>
  );
}
