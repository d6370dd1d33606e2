// The section of the settings about usage: what the organization stores, its rates, and what model calls took.
import type { SectionProps } from "../../api/settings";
import { Spending } from "./parts/Spending";
import { Stored } from "./parts/Stored";
import style from "./section.module.css";
import { readUsageState } from "./url";

export function Section({ place, organization }: SectionProps) {
  const state = readUsageState(organization.name, place.query);
  return (
    <div className={style["screen"]}>
      <h1 tabIndex={-1}>Usage</h1>
      <Stored state={state} />
      <Spending state={state} />
    </div>
  );
}
