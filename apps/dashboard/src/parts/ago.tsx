import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import { showAgo, showTime } from './amounts';

const NowContext = createContext(Date.now());

/** One clock for all relative times of the page. */
export function Clock({ children }: { children: ReactNode }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return <NowContext value={now}>{children}</NowContext>;
}

export const useNow = (): number => useContext(NowContext);

/** Relative, with the absolute on hover. */
export function Ago({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <>–</>;
  return (
    <time dateTime={at} title={showTime(at)} className="ago">
      {showAgo(at, now)}
    </time>
  );
}
