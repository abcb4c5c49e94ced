import { Component, type ReactNode } from 'react';

interface Props {
  children: ReactNode;
  instead: (error: unknown) => ReactNode;
}

/** Shows something else instead of what threw. */
export class Caught extends Component<Props, { failed?: { error: unknown } }> {
  override state: { failed?: { error: unknown } } = {};

  static getDerivedStateFromError(error: unknown) {
    return { failed: { error } };
  }

  override render(): ReactNode {
    const { failed } = this.state;
    return failed ? this.props.instead(failed.error) : this.props.children;
  }
}
