import { type ComponentType, useEffect, useRef, useState } from 'react';
import { useSay } from './toasts';

/** Whether a dialog is open, and was ever wanted. When it closes, the focus goes back to where it was. */
export function useDialog() {
  const [opened, setOpened] = useState(false);
  const [wanted, want] = useState(false);
  const from = useRef<Element>(null);
  // A dialog that is there from its first moment knows of nothing before it.
  useEffect(() => {
    if (!opened && from.current instanceof HTMLElement) from.current.focus({ preventScroll: true });
  }, [opened]);
  const open = (): void => {
    from.current = document.activeElement;
    want(true);
    setOpened(true);
  };
  return { opened, wanted, open, close: () => setOpened(false) };
}

interface Closing {
  opened: boolean;
  close: () => void;
}

/** What people open: its script comes when somebody does. */
export function laterDialog<Props extends Closing>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return props => {
    const say = useSay();
    const [Dialog, setDialog] = useState(() => loaded);
    const { opened, close } = props;
    const closeNow = useRef(close);
    closeNow.current = close;
    useEffect(() => {
      if (!opened || loaded) return;
      load().then(
        found => {
          loaded = found;
          setDialog(() => found);
        },
        () => {
          say('It did not load: the gateway was replaced by another release, or is away. Load the page anew.');
          closeNow.current();
        },
      );
    }, [opened, say]);
    return Dialog ? <Dialog {...props} /> : null;
  };
}
