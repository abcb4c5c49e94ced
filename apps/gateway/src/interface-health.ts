import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { OverviewReply } from '#admin/contract/overview';
import type { Config } from '#platform/config/config';
import type { EndpointSockets, Protocol } from './endpoint-sockets.js';

type Leg = OverviewReply['legs'][number];

const KNOCK_MS = 1_000;
/** Named in a detail; more are counted. */
const NAMED = 3;

interface Door {
  name: string;
  answers: boolean;
  /** When it does not. */
  why: string;
}

/**
 * How this gateway serves each interface, to a tenant or to all: it knocks at the doors that are to be open, as a client would. A
 * tenant is told of its own sockets alone.
 */
export async function interfaceHealth(config: Config, doors: EndpointSockets, tenantId?: string): Promise<Leg[]> {
  const [cosi, csi, tls] = await Promise.all([
    sockets(doors, 'cosi', tenantId),
    sockets(doors, 'csi', tenantId),
    tlsDoor(config),
  ]);
  return [
    {
      name: 'cosi',
      ...(cosi.length > 0
        ? verdict(cosi)
        : { health: 'absent', detail: 'no socket is registered, or all are suspended' }),
    },
    { name: 'csp', ...ok('this gateway answers') },
    {
      name: 'cbt',
      ...(tls.length + csi.length > 0
        ? verdict([...tls, ...csi])
        : ok('over REST alone: TRIVET_CBT_LISTEN is `none`, and no socket is registered')),
    },
  ];
}

const sockets = (doors: EndpointSockets, protocol: Protocol, tenantId?: string): Promise<Door[]> =>
  Promise.all(
    doors.wanted(protocol, tenantId).map(async ({ label, path, problem }) => ({
      name: `endpoint ${label}`,
      // Of two gateways on a host the other one may answer.
      answers: await knock({ path }),
      why: problem ?? `nobody answers at ${path}`,
    })),
  );

async function tlsDoor({ TRIVET_CBT_LISTEN: listen }: Config): Promise<Door[]> {
  if (listen === 'none') return [];
  return [{ name: 'TRIVET_CBT_LISTEN', answers: await knock(listen), why: 'nobody answers there' }];
}

function verdict(doors: readonly Door[]): Pick<Leg, 'health' | 'detail'> {
  const deaf = doors.filter(({ answers }) => !answers);
  if (deaf.length === 0) return ok(doors.length === 1 ? 'its door answers' : `its ${doors.length} doors answer`);
  const said = deaf.slice(0, NAMED).map(({ name, why }) => `${name}: ${why}`);
  if (deaf.length > NAMED) said.push(`${deaf.length - NAMED} more`);
  return { health: deaf.length === doors.length ? 'down' : 'degraded', detail: said.join('; ') };
}

/** The certificate that people have configured; one of our own is renewed by itself. */
export function certificateOf({ TRIVET_TLS_CERT_FILE: path }: Config): { path: string; until: Date } | undefined {
  if (path === undefined) return undefined;
  try {
    return { path, until: new Date(new X509Certificate(readFileSync(path)).validTo) };
  } catch {
    // The doors that use it say so themselves.
    return undefined;
  }
}

const ok = (detail: string) => ({ health: 'ok', detail }) as const;

function knock(place: { path: string } | { host: string; port: number }): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ ...place, timeout: KNOCK_MS });
    const said = (answers: boolean) => {
      socket.destroy();
      resolve(answers);
    };
    socket.once('connect', () => said(true));
    socket.once('timeout', () => said(false));
    socket.once('error', () => said(false));
  });
}
