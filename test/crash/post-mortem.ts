import { readdirSync, readFileSync } from 'node:fs';
import type { DaemonProcess, TestAppliance } from '#test/support/appliance';

const OPEN = `SELECT id, kind, state, step, attempt, crashes, place, dispatch_no, dispatched_at, next_run_at, lease_owner,
                     lease_until, error, now() FROM trivet.operation WHERE finished_at IS NULL ORDER BY seq`;
const SLOTS = 'SELECT operation_id, resource_id, slot, own, held, busy_until FROM trivet.operation_slot ORDER BY seq';
const EVENTS = 'SELECT operation_id, type, detail, at FROM trivet.operation_event ORDER BY seq DESC LIMIT 20';
const CIRCUITS = 'SELECT * FROM trivet.backend_circuit';
const SESSIONS = `SELECT application_name, state, wait_event_type, wait_event, now() - state_change AS since, left(query, 120) AS query
                    FROM pg_stat_activity WHERE datname = current_database() AND state IS NOT NULL ORDER BY state_change`;

/** What somebody needs who was not there: why does it not go on? */
export async function postMortem({ database }: TestAppliance, worker: DaemonProcess): Promise<string> {
  const parts = { open: OPEN, slots: SLOTS, events: EVENTS, circuits: CIRCUITS, sessions: SESSIONS };
  const told = Object.entries(parts).map(async ([name, query]) => {
    const rows = await database.query(query);
    return `${name}:\n${rows.map(row => `  ${JSON.stringify(row)}`).join('\n')}`;
  });
  const state = worker.exited ? `ended (${JSON.stringify(await worker.ended())})` : `runs (${threadsOf(worker.pid)})`;
  const log = `the worker ${state}, and said:\n${worker.log().slice(-4_000)}`;
  return [...(await Promise.all(told)), log].join('\n');
}

/** Of each thread its state and where in the kernel it waits: D is a call that does not come back. */
function threadsOf(pid: number): string {
  const threads = readdirSync(`/proc/${pid}/task`).map(tid => {
    const of = (file: string) => readFileSync(`/proc/${pid}/task/${tid}/${file}`, 'utf8').trim();
    return `${/^State:\s+(\S)/m.exec(of('status'))?.[1]} ${of('wchan')}`;
  });
  return [...Map.groupBy(threads, one => one)].map(([one, all]) => `${all.length} ${one}`).join(', ');
}
