// The section of the settings about usage: what the organization stores, its rates, and what model calls took.
import type { SectionProps } from "../../api/settings";
import { SectionPage } from "../../design/SectionPage";
import { Spending } from "./parts/Spending";
import { Stored } from "./parts/Stored";
import style from "./section.module.css";
import { readUsageState } from "./url";

export function Section({ place, organization }: SectionProps) {
  const state = readUsageState(organization.name, place.query);
  return (
    <SectionPage title="Usage" note="What this organization stores. Sizes are those before compression, and the newest rows are not in them yet.">
      <div className={style["screen"]}>
        <Stored state={state} />
        <Spending state={state} />
      </div>
    </SectionPage>
  );
}
