import type { OperationDetailReply } from '#admin/contract/operations';
import { ago, facts, span } from './output.js';

const MARKS = { done: '✓', current: '▶', waiting: '·' } as const;
const EVENTS = 20;

/** All that a person wants to know of one operation. */
export function describeOperation(operation: OperationDetailReply, now = Date.now()): string {
  const { resource, lease, error, nextRunAt, waitsForBackend, waitsForHost, steps, events, waitsFor, dispatch } =
    operation;
  const until = (time: string): string => {
    const ms = Date.parse(time) - now;
    return ms > 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
  };
  const head = facts([
    ['operation', operation.id],
    ['kind', operation.kind],
    ['tenant', operation.tenant],
    ['about', `${resource.kind} ${resource.name} (${resource.id})`],
    ['backend', operation.backend],
    ['asked by', operation.actor],
    ['state', operation.state + (operation.cancelRequested ? ', asked to stop' : '')],
    ['accepted', `${operation.createdAt} (${ago(operation.createdAt, now)} ago)`],
    ['ended', operation.finishedAt && `${operation.finishedAt}, after ${tookOf(operation)}`],
    [
      'attempts',
      `${operation.attempt}${operation.crashes > 0 ? `, ${operation.crashes} ended with their worker` : ''}`,
    ],
    ['step', operation.step],
    ['next attempt', operation.state === 'pending' && nextRunAt ? until(nextRunAt) : null],
    [
      'waits for',
      (waitsForHost && `its host: ${waitsForHost}`) ||
        (waitsForBackend && `its backend: ${waitsForBackend.reason}; next probe ${until(waitsForBackend.nextProbeAt)}`),
    ],
    ['lease', lease && `worker ${lease.worker}, ends ${until(lease.until)}, fence ${lease.fence}`],
    ['dispatched', dispatch.at && `${dispatch.number} times, last ${until(dispatch.at)}`],
    ['error', error && `${error.kind}: ${error.message}`],
    ['advice', operation.advice],
    ['trace', operation.traceparent?.split('-')[1]],
    ...operation.actions.map(
      (verb, n) => [n === 0 ? 'you may' : '', `trivet operation ${verb} ${operation.id}`] as const,
    ),
  ]);
  const more: string[] = [];
  if (operation.items) more.push(describeItems(operation.items, operation.id));
  if (waitsFor.length > 0)
    more.push(
      `before it in line:\n${waitsFor.map(({ operation: id, kind, slot }) => `  ${id}  ${kind} (${slot})`).join('\n')}`,
    );
  if (steps.length > 0) more.push(`steps:\n${steps.map(({ name, state }) => `  ${MARKS[state]} ${name}`).join('\n')}`);
  if (events.length > 0) {
    const shown = events.slice(-EVENTS);
    const left = events.length - shown.length;
    const lines = shown.map(({ at, type, detail }) => `  ${at}  ${type}${inWords(detail)}`);
    more.push(`events:\n${left > 0 ? `  ${left} earlier ones\n` : ''}${lines.join('\n')}`);
  }
  return [head, ...more].join('\n\n');
}

function describeItems(
  { total, done, failed, running, waiting, skipped, failures }: NonNullable<OperationDetailReply['items']>,
  id: string,
): string {
  const told = failures.map(item => `  ${item.name || item.id}: ${item.message}`);
  if (failed > failures.length)
    told.push(`  and ${failed - failures.length} more: trivet bulk items ${id} --state failed`);
  const head = `${done} of ${total} done, ${failed} failed, ${running} under way, ${waiting} not begun, ${skipped} never begun`;
  return told.length > 0 ? `items: ${head}; failed:\n${told.join('\n')}` : `items: ${head}`;
}

const tookOf = ({ createdAt, finishedAt }: OperationDetailReply): string =>
  span(Date.parse(finishedAt!) - Date.parse(createdAt));

function inWords(detail: Readonly<Record<string, unknown>>): string {
  const words = Object.entries(detail).map(([name, value]) =>
    `${name} ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`.slice(0, 200),
  );
  return words.length === 0 ? '' : `  ${words.join(', ')}`;
}
