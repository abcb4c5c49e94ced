import { setTimeout as delay } from 'node:timers/promises';
import type { z } from 'zod';
import { type event, eventRoutes } from '#admin/contract/overview';
import type { ApiClient, Sent } from './api-client.js';
import { ApiError } from './api-error.js';

export type StreamEvent = z.output<typeof event>;
/** `reset`: what happened meanwhile is not known any more, so lists are to be read again. */
export type Message =
  | { type: 'event'; id: string; event: StreamEvent }
  /** Nothing has happened up to there: said at the begin of a stream, and with each heartbeat. */
  | { type: 'alive'; id: string }
  | { type: 'reset' }
  | { type: 'lost'; why: string };

/** Heartbeats come each 15 s. */
const SILENCE_MS = 45_000;
const RETRY_MS = [500, 1_000, 2_000, 5_000];

/** @returns milliseconds before the next attempt, after so many that failed before the last one */
export const pauseAfter = (failures: number): number => RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]!;

export const lostBy = (why: string): string => `connection lost (${why}), retrying`;

/**
 * Events as they come, for ever: a connection that breaks is opened again where it ended (Last-Event-ID), which the reader
 * is told (`lost`). Ends with the signal; throws when the API refuses the stream.
 *
 * @param began called when a stream is open that resumes nothing: what was read before may be older than its first event
 */
export async function* readEvents(
  api: ApiClient,
  query: Sent<typeof eventRoutes.stream>['query'],
  signal: AbortSignal,
  began: () => void = () => {},
): AsyncGenerator<Message> {
  let lastId: string | undefined;
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      for await (const message of oneConnection(api, query, signal, lastId, began)) {
        failures = 0;
        lastId = message.type === 'reset' ? undefined : message.id;
        yield message;
      }
      if (!signal.aborted) yield { type: 'lost', why: 'the server ended the stream' };
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ApiError) || error.exitCode === 77 || error.status === 404 || error.status === 400)
        throw error;
      yield { type: 'lost', why: error.message.split('\n')[0]! };
    }
    await delay(pauseAfter(failures), undefined, { signal }).catch(() => {});
  }
}

async function* oneConnection(
  api: ApiClient,
  query: Sent<typeof eventRoutes.stream>['query'],
  signal: AbortSignal,
  lastId: string | undefined,
  began: () => void,
): AsyncGenerator<Exclude<Message, { type: 'lost' }>> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), SILENCE_MS);
  const headers: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId };
  try {
    const both = AbortSignal.any([signal, silence.signal]);
    const body = await api.stream(eventRoutes.stream, { query }, both, headers);
    if (lastId === undefined) began();
    for await (const { id, type, data } of parseEvents(body, () => timer.refresh())) {
      if (type === 'reset') yield { type };
      else if (type === 'alive') yield { type, id };
      else yield { type: 'event', id, event: JSON.parse(data) as StreamEvent };
    }
  } catch (error) {
    if (signal.aborted || error instanceof ApiError) throw error;
    throw ApiError.broken(silence.signal.aborted ? 'nothing was heard for 45 s' : 'the connection broke');
  } finally {
    clearTimeout(timer);
  }
}

interface SentEvent {
  id: string;
  type: string;
  data: string;
}

/**
 * As the HTML standard has it (9.2.6), for what a server of ours sends; an id without an event comes as `alive`. `heard` is
 * called for anything, comments too.
 */
export async function* parseEvents(
  body: AsyncIterable<Uint8Array>,
  heard: () => void = () => {},
): AsyncGenerator<SentEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  let id = '';
  let type = '';
  let data: string[] = [];
  let isNamed = false;
  for await (const chunk of body) {
    heard();
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop()!;
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0 || type === 'reset') yield { id, type: type || 'message', data: data.join('\n') };
        else if (isNamed) yield { id, type: 'alive', data: '' };
        type = '';
        isNamed = false;
        data = [];
        continue;
      }
      const [, field, value] = /^([^:]*)(?::\x20?(.*))?$/s.exec(line)!;
      if (field === 'id') {
        id = value ?? '';
        isNamed = true;
      } else if (field === 'event') type = value ?? '';
      else if (field === 'data') data.push(value ?? '');
    }
  }
}
