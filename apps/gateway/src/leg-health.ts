import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { OverviewReply } from '#admin/contract/overview';
import type { Config } from '#platform/config';

type Leg = OverviewReply['legs'][number];

const KNOCK_MS = 1_000;

/** How this gateway serves each leg: it knocks at its own doors, as a client would. */
export async function legHealth(config: Config): Promise<Leg[]> {
  const [cosi, cbt, csi] = await Promise.all([
    config.COSI_ENDPOINT === undefined ? undefined : knock({ path: config.COSI_ENDPOINT }),
    config.TRIVET_CBT_LISTEN === 'none' ? undefined : knock(config.TRIVET_CBT_LISTEN),
    config.TRIVET_CSI_ENDPOINT === undefined ? undefined : knock({ path: config.TRIVET_CSI_ENDPOINT }),
  ]);
  return [
    cosi === undefined
      ? {
          name: 'cosi',
          health: 'absent',
          detail: 'COSI_ENDPOINT is not set; endpoints of tenants have sockets of their own',
        }
      : { name: 'cosi', ...(cosi ? ok('its socket answers') : down(`nobody answers at ${config.COSI_ENDPOINT}`)) },
    { name: 'csp', ...ok('this gateway answers') },
    cbtLeg(cbt, csi),
  ];
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
const down = (detail: string) => ({ health: 'down', detail }) as const;

function cbtLeg(tls: boolean | undefined, socket: boolean | undefined): Leg {
  const doors = [
    ['TRIVET_CBT_LISTEN', tls],
    ['TRIVET_CSI_ENDPOINT', socket],
  ] as const;
  const there = doors.filter(([, answers]) => answers !== undefined);
  const deaf = there.filter(([, answers]) => !answers).map(([name]) => name);
  if (there.length === 0)
    return {
      name: 'cbt',
      health: 'ok',
      detail: 'over REST alone: neither TRIVET_CBT_LISTEN nor TRIVET_CSI_ENDPOINT is set',
    };
  if (deaf.length === 0) return { name: 'cbt', ...ok('its doors answer') };
  return {
    name: 'cbt',
    health: deaf.length === there.length ? 'down' : 'degraded',
    detail: `nobody answers at ${deaf.join(', ')}`,
  };
}

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
