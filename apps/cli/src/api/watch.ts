import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type OperationDetailReply, type OperationReply, operationRoutes } from '#admin/contract/operations';
import { table } from '../table.js';
import type { ApiClient } from './api-client.js';
import { ApiError, EXIT } from './api-error.js';
import { lostBy, type Message, readEvents } from './event-reader.js';
import { LiveLines } from './live-lines.js';
import { ago, bar, listed, printable, span } from './output.js';

interface WatchOptions {
  json?: boolean;
  tenant?: string;
}

const POLL_MS = 1_000;
/** Ended ones stay in sight for so long. */
const ENDED_MS = 15_000;
const MOST = 40;

/**
 * Until Ctrl-C or SIGTERM, which is no error.
 *
 * @param out where a reader may leave: `--watch | head -1`
 */
export function untilInterrupted(out: Pick<EventEmitter, 'once'> = process.stdout): AbortController {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  for (const event of ['close', 'error']) out.once(event, () => stop.abort());
  return stop;
}

/** Follows one to its end: 0 when it succeeded, 1 otherwise. */
export async function watchOne(api: ApiClient, id: string, { json }: WatchOptions): Promise<number> {
  const stop = untilInterrupted();
  // Scripts that read JSON get no second voice, unless somebody looks on.
  const live = json && !process.stderr.isTTY ? undefined : new LiveLines(json ? process.stderr : process.stdout);
  let wake = (): void => {};
  const events = json
    ? undefined
    : (async () => {
        for await (const _ of readEvents(api, { operation: id }, stop.signal)) wake();
      })().catch(() => {
        // The polling below says what is wrong.
      });
  let operation: OperationDetailReply;
  let interrupted = false;
  try {
    for (;;) {
      ({ reply: operation } = await api.call(operationRoutes.get, { params: { operation: id } }));
      live?.show([progressLine(operation)]);
      interrupted = stop.signal.aborted;
      if (operation.finishedAt !== null || operation.state === 'needs_attention' || interrupted) break;
      await Promise.race([
        delay(POLL_MS, undefined, { signal: stop.signal }).catch(() => {}),
        new Promise<void>(resolve => {
          wake = resolve;
        }),
      ]);
    }
  } finally {
    live?.end();
    // Else the stream keeps the process, also when there is no such operation.
    stop.abort();
    await events;
  }
  if (json) process.stdout.write(`${JSON.stringify(operation, null, 2)}\n`);
  else if (operation.error && operation.state !== 'succeeded') {
    process.stdout.write(`${printable(operation.error.message)}\n`);
    if (operation.advice) process.stdout.write(`${operation.advice}\n`);
  }
  if (interrupted) return EXIT.later;
  return operation.state === 'succeeded' ? 0 : EXIT.refused;
}

const WIDTH = 24;

/** `volume.create data  [████████······] 3/5 commit  running, attempt 2, 12s`. */
export function progressLine(operation: OperationDetailReply, now = Date.now()): string {
  const { steps, state, kind, resource, attempt, createdAt, finishedAt, nextRunAt, waitsForBackend } = operation;
  const done = state === 'succeeded' ? steps.length : steps.filter(step => step.state === 'done').length;
  const drawn = steps.length === 0 ? '' : `  ${bar(done / steps.length, WIDTH)} ${done}/${steps.length}`;
  const step = steps.find(each => each.state === 'current')?.name;
  const waits = state === 'pending' && nextRunAt ? Date.parse(nextRunAt) - now : 0;
  const words = [
    state,
    attempt > 1 ? `attempt ${attempt}` : '',
    waits > 0 ? `next attempt in ${span(waits)}` : '',
    waitsForBackend ? 'waits for its backend' : '',
    span((finishedAt ? Date.parse(finishedAt) : now) - Date.parse(createdAt)),
  ].filter(word => word !== '');
  return `${kind} ${printable(resource.name)}${drawn}${step && state === 'running' ? ` ${step}` : ''}  ${words.join(', ')}`;
}

interface Row {
  id: string;
  tenant: string;
  kind: string;
  resource: string;
  state: string;
  last: string;
  error: string;
  since: string;
  /** When it was heard of last. */
  at: number;
}

const UNFINISHED = new Set(['pending', 'running', 'needs_attention']);

/** All that happens: a live table at a terminal, else a line an event; events as NDJSON with --json. */
export async function watchAll(api: ApiClient, { json, tenant }: WatchOptions): Promise<number> {
  const stop = untilInterrupted();
  api.endWith(stop.signal);
  const asTable = !json && process.stdout.isTTY === true;
  const rows = new Map<string, Row>();
  const live = new LiveLines(process.stdout);
  let connection = '';
  let isStale = true;
  const draw = (): void => live.show(tableOf(rows), [connection === '' ? 'live; Ctrl-C ends' : connection]);
  const fill = async (): Promise<void> => {
    await refill(api, tenant, rows);
    isStale = false;
  };
  const ticking = asTable ? setInterval(draw, POLL_MS) : undefined;
  try {
    if (asTable) await fill();
    if (asTable) draw();
    const began = (): void => {
      isStale = true;
    };
    for await (const message of readEvents(api, { tenant }, stop.signal, began)) {
      if (!asTable) {
        if (message.type === 'alive') continue;
        const shown = json ? JSON.stringify(message.type === 'event' ? message.event : message) : lineOf(message);
        process.stdout.write(`${shown}\n`);
      } else {
        connection = message.type === 'lost' ? lostBy(message.why) : '';
        if (message.type === 'reset') isStale = true;
        else if (message.type === 'event') note(rows, message.event);
        if (isStale && message.type !== 'lost')
          await fill().catch(error => {
            if (!(error instanceof ApiError) || !error.passes) throw error;
            connection = lostBy(error.message.split('\n')[0]!);
          });
        draw();
      }
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    clearInterval(ticking);
    live.end();
  }
  return 0;
}

async function refill(api: ApiClient, tenant: string | undefined, rows: Map<string, Row>): Promise<void> {
  const query = { state: 'pending,running,needs_attention', tenant };
  const { items } = await listed(api, operationRoutes.list, { query } as never, MOST);
  rows.clear();
  for (const { id, tenant: of, kind, resource, state, step, error, createdAt: since } of items as OperationReply[])
    keep(rows, {
      id,
      tenant: of,
      kind,
      resource: resource.name,
      state,
      last: step ?? '',
      error: error?.message,
      since,
    });
}

function note(rows: Map<string, Row>, { operation, tenant, at }: Extract<Message, { type: 'event' }>['event']): void {
  if (!operation) return;
  const { id, kind, resource, state, event: last, error } = operation;
  keep(rows, { id, tenant, kind, resource: resource.name, state, last, error, since: rows.get(id)?.since ?? at });
}

const keep = (
  rows: Map<string, Row>,
  { error, ...row }: Omit<Row, 'at' | 'error'> & { error: string | null | undefined },
): void => void rows.set(row.id, { ...row, error: error ?? '', at: Date.now() });

function tableOf(rows: Map<string, Row>): string[] {
  const now = Date.now();
  for (const [id, row] of rows) if (!UNFINISHED.has(row.state) && now - row.at > ENDED_MS) rows.delete(id);
  const shown = [...rows.values()].sort((a, b) => Date.parse(a.since) - Date.parse(b.since)).slice(0, MOST);
  const left = rows.size - shown.length;
  const lines =
    shown.length === 0
      ? ['nothing is under way']
      : table(
          ['ID', 'TENANT', 'KIND', 'RESOURCE', 'STATE', 'LAST', 'AGE', 'ERROR'],
          shown.map(row =>
            [row.id, row.tenant, row.kind, row.resource, row.state, row.last, ago(row.since), row.error].map(printable),
          ),
        )
          .trimEnd()
          .split('\n');
  if (left > 0) lines.push(`and ${left} more`);
  return lines;
}

function lineOf(message: Exclude<Message, { type: 'alive' }>): string {
  if (message.type === 'lost') return lostBy(message.why);
  if (message.type === 'reset') return 'some events are not kept any more: look at `trivet operation list`';
  const { at, tenant, operation, audit } = message.event;
  if (operation) {
    const error = operation.error ? `  ${operation.error}` : '';
    return printable(
      `${at}  ${tenant}  ${operation.kind} ${operation.resource.name}  ${operation.event}  ${operation.state}  ${operation.id}${error}`,
    );
  }
  return printable(
    `${at}  ${tenant}  ${audit?.action ?? ''} ${audit?.subject.name ?? ''}  by ${audit?.actor.name ?? ''}`,
  );
}
