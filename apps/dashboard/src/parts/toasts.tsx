import { CloseButton } from '@mantine/core';
import { createContext, type ReactNode, useCallback, useContext, useState } from 'react';

type Say = (text: string) => void;
const ToastContext = createContext<Say>(() => {});
/** Says shortly, also to screen readers, that something was done. */
export const useSay = (): Say => useContext(ToastContext);

const SHOWN_MS = 6_000;
let lastId = 0;

export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<{ id: number; text: string }[]>([]);
  const remove = useCallback((id: number) => setToasts(before => before.filter(toast => toast.id !== id)), []);
  const say = useCallback<Say>(
    text => {
      const id = ++lastId;
      setToasts(before => [...before.slice(-3), { id, text }]);
      setTimeout(() => remove(id), SHOWN_MS);
    },
    [remove],
  );
  return (
    <ToastContext value={say}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map(({ id, text }) => (
          <div key={id} className="toast">
            <span>{text}</span>
            <CloseButton size="sm" aria-label="Close this message" onClick={() => remove(id)} />
          </div>
        ))}
      </div>
    </ToastContext>
  );
}
