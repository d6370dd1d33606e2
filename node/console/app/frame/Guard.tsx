// Keeps a fault of a screen from leaving an empty page: it says what failed and offers to load again.
import { Component, type ReactNode } from "react";
import { Button } from "../design/Button";
import { Empty } from "../design/Empty";

interface GuardProps {
  readonly children: ReactNode;
}

interface GuardState {
  readonly fault: string | null;
}

export class Guard extends Component<GuardProps, GuardState> {
  override state: GuardState = { fault: null };

  static getDerivedStateFromError(error: unknown): GuardState {
    return { fault: error instanceof Error ? error.message : String(error) };
  }

  override render(): ReactNode {
    if (this.state.fault === null) return this.props.children;
    return (
      <main>
        <Empty action={<Button onClick={() => window.location.reload()}>Load again</Button>}>
          This page failed: {this.state.fault}
        </Empty>
      </main>
    );
  }
}
