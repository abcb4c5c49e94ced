import type { BackendReply } from '#admin/contract/backends';
import { facts } from '../api/output.js';
import { humanBytes } from '../human-bytes.js';

/** All that a person wants to know of one backend. Its keys are with nobody. */
export function describeBackend(backend: BackendReply): string {
  const { name, id, kind, shared, state, description, health, capacity, config, pools, createdAt, updatedAt } = backend;
  const head = facts([
    ['name', name],
    ['id', id],
    ['kind', shared ? `${kind}, a share of the appliance's` : kind],
    ['description', description],
    ['state', state],
    ['health', [health.state, health.reason, health.since && `since ${health.since}`].filter(Boolean).join(', ')],
    ['holds', holdsOf(backend) || 'nothing'],
    ['used', capacity && `${humanBytes(capacity.used)} of ${humanBytes(capacity.total)}`],
    ...(pools ?? []).map((pool, at) => [at === 0 ? 'pools' : '', poolText(pool)] as const),
    ['registered', createdAt],
    ['changed', updatedAt],
  ]);
  const set = Object.entries(config).map(([field, value]) => [field, shown(value)] as const);
  return [head, set.length === 0 ? 'no settings' : `settings:\n${indented(facts(set))}`].join('\n\n');
}

export function holdsOf({ holds }: BackendReply): string {
  return Object.entries(holds)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ');
}

type Pool = NonNullable<BackendReply['pools']>[number];

const poolText = ({ name, state, reason, used, total, promised, thinRatio }: Pool): string =>
  `${name} is ${state}${reason === null ? '' : ` (${reason})`}: ${humanBytes(used)} of ${humanBytes(total)} used, ${humanBytes(promised)} promised of ${thinRatio} times its size`;

/** As `--set` takes it. */
const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
const indented = (lines: string): string => lines.replaceAll(/^/gm, '  ');
