// The screens of review, with the parts of other screens that they show.
import { lazily } from "../design/Lazily";
import { ReviewScreen } from "../features/review/screen";
import type { PageProps } from "./PageScreen";

const parts = {
  FilterBar: lazily(async () => (await import("../features/logs/filter")).FilterBar),
  TracePanel: lazily(async () => (await import("../features/trace/panel")).TracePanel),
  Contents: lazily(async () => (await import("../features/trace/panel")).SpanContents),
};

export function ReviewScreens(props: PageProps) {
  return <ReviewScreen {...props} parts={parts} />;
}
