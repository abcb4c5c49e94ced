import { useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react';
import { addressOf, problemFrom } from './client';
import { type StreamMessage, StreamParser } from './event-stream';
import { Invalidations, type LiveEvent } from './invalidations';

export type LiveState = 'connecting' | 'live' | 'lost';

interface Live {
  state: LiveState;
  paused: boolean;
  /** Events that came while it was paused. */
  missed: number;
  setPaused(paused: boolean): void;
}

const LiveContext = createContext<Live>({ state: 'connecting', paused: false, missed: 0, setPaused: () => {} });
export const useLive = (): Live => useContext(LiveContext);

/** Heartbeats come each 15 s; what is silent for longer is gone, whatever TCP thinks. */
const SILENCE_MS = 40_000;
const RETRY_MS = { first: 500, longest: 10_000 };

/**
 * Listens to the stream of events and reads again what they are about. The last id is kept over a lost connection, so
 * nothing is missed; without one, and after `reset`, everything is read again.
 */
export function LiveProvider({ children, onLoggedOut }: { children: ReactNode; onLoggedOut: () => void }) {
  const client = useQueryClient();
  const [state, setState] = useState<LiveState>('connecting');
  const [paused, setPausedState] = useState(false);
  const [missed, setMissed] = useState(0);
  const pausedNow = useRef(false);
  const invalidations = useMemo(() => new Invalidations(client), [client]);

  const setPaused = useCallback(
    (wanted: boolean) => {
      pausedNow.current = wanted;
      setPausedState(wanted);
      setMissed(0);
      if (wanted) invalidations.hold();
      else invalidations.everything();
    },
    [invalidations],
  );

  useEffect(() => {
    const end = new AbortController();
    const heard = ({ event, data }: StreamMessage): void => {
      if (pausedNow.current) setMissed(count => count + 1);
      else if (event === 'reset') invalidations.everything();
      else invalidations.heard(JSON.parse(data) as LiveEvent);
    };
    // What happened before the stream began is told by nobody: what was read until then is read again.
    const began = (): void => {
      if (!pausedNow.current) invalidations.everything();
    };
    void listen(end.signal, { heard, began, setState, onLoggedOut });
    return () => {
      end.abort();
      invalidations.stop();
    };
  }, [invalidations, onLoggedOut]);

  const value = useMemo(() => ({ state, paused, missed, setPaused }), [state, paused, missed, setPaused]);
  return <LiveContext value={value}>{children}</LiveContext>;
}

interface Listener {
  heard(message: StreamMessage): void;
  /** A stream that resumes nothing. */
  began(): void;
  setState(state: LiveState): void;
  onLoggedOut(): void;
}

/** Until `signal`; each broken connection is followed by another after a pause that grows. */
async function listen(signal: AbortSignal, listener: Listener): Promise<void> {
  let lastId: string | null = null;
  let pause = RETRY_MS.first;
  while (!signal.aborted) {
    try {
      const connection = new AbortController();
      const stop = (): void => connection.abort();
      signal.addEventListener('abort', stop);
      try {
        const headers: Record<string, string> = { accept: 'text/event-stream' };
        if (lastId !== null) headers['last-event-id'] = lastId;
        const response = await fetch(addressOf('/events', {}), { headers, signal: connection.signal });
        if (!response.ok) {
          const { code } = await problemFrom(response);
          if (code === 'unauthenticated') return listener.onLoggedOut();
          throw new Error(code);
        }
        listener.setState('live');
        if (lastId === null) listener.began();
        pause = RETRY_MS.first;
        for await (const message of messages(response, stop)) {
          if (message.id !== null) lastId = message.id;
          listener.heard(message);
        }
      } finally {
        signal.removeEventListener('abort', stop);
        connection.abort();
      }
    } catch {
      // Whatever broke it, the remedy is the same.
    }
    if (signal.aborted) return;
    listener.setState('lost');
    await new Promise(resolve => setTimeout(resolve, pause * (0.5 + Math.random())));
    pause = Math.min(pause * 2, RETRY_MS.longest);
  }
}

async function* messages(response: Response, stop: () => void): AsyncGenerator<StreamMessage> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new StreamParser();
  for (;;) {
    const silence = setTimeout(stop, SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    yield* parser.push(value);
  }
}
