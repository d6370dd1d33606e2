// The section about access: who may do what on an object and why, and what a person reaches.
import { useMemo } from "react";
import type { SectionProps } from "../../api/settings";
import { Empty } from "../../design/Empty";
import { SectionPage } from "../../design/SectionPage";
import { Tabs } from "../../design/Tabs";
import { navigate } from "../../lib/router";
import { ByObject } from "./parts/ByObject";
import { ByPerson } from "./parts/ByPerson";
import { ObjectPicker } from "./parts/ObjectPicker";
import { isSingle, type AskedObject } from "./queries";
import { ACCESS_DEFAULTS, readAccess, writeAccess, type AccessState } from "./url";
import { useKnown } from "./useKnown";

const TABS = [
  { id: "object", title: "By object" },
  { id: "person", title: "By person" },
];

export function Section(props: SectionProps) {
  const { place, organization } = props;
  const state = readAccess(place);
  const known = useKnown(props, state);
  const go = (changed: Partial<AccessState>, how: "push" | "replace"): void =>
    navigate(writeAccess(organization.name, { ...state, ...changed }), how);
  const id = isSingle(state.kind) ? organization.id : state.id;
  const object = useMemo<AskedObject>(() => ({ kind: state.kind, id, name: known.nameOf(id) }), [state.kind, id, known]);
  return (
    <SectionPage title="Access" note="Nobody may do anything unless a grant says so. A grant on an object is one on everything in it.">
      <Tabs
        label="Access"
        tabs={TABS}
        chosen={state.by}
        onChoose={(by) => go({ ...ACCESS_DEFAULTS, by: by === "person" ? "person" : "object" }, "replace")}
      >
        {state.by === "person" ? (
          <ByPerson key={state.user} known={known} state={state} go={go} />
        ) : (
          <>
            <ObjectPicker state={state} {...known} onChange={(changed) => go(changed, "push")} />
            {id === "" ? (
              <Empty>Choose an object to see who may do what with it.</Empty>
            ) : (
              <ByObject key={`${state.kind} ${id}`} known={known} object={object} state={state} go={go} />
            )}
          </>
        )}
      </Tabs>
    </SectionPage>
  );
}
