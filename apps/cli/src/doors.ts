import { join } from 'node:path';
import { portals as parsePortals } from '#platform/config/block-forms';
import { isLocal, servesNodes } from '#storage/block/pools/portals';
import { ADMIN_LOGIN } from './credentials.js';
import type { Home } from './home.js';
import type { State } from './state.js';

/** Where administrators reach the API, below /api/v1, and the dashboard. */
export const adminUrl = ({ env }: Pick<State, 'env'>): string => `http://${env.TRIVET_HTTP_LISTEN}`;

/** Where CSP clients reach the gateway; undefined without a pool, and without a gateway. */
export function cspDoors({
  partsOnly,
  env,
}: Pick<State, 'partsOnly' | 'env'>): { url: string; tlsUrl?: string } | undefined {
  if (partsOnly || !env.TRIVET_POOLS) return undefined;
  const tls = env.TRIVET_HTTPS_LISTEN;
  return { url: `http://${env.TRIVET_HTTP_LISTEN}`, ...(tls && tls !== 'none' ? { tlsUrl: `https://${tls}` } : {}) };
}

/** Where backup software reads changed blocks, and the certificate that it trusts; undefined as above. */
export function cbtDoors(home: Home, { partsOnly, env }: Pick<State, 'partsOnly' | 'env'>) {
  const listen = env.TRIVET_CBT_LISTEN;
  if (partsOnly || !env.TRIVET_POOLS || !listen || listen === 'none') return undefined;
  const caFile = env.TRIVET_TLS_CA_FILE ?? env.TRIVET_TLS_CERT_FILE ?? home.file(join('tls', 'certificate.pem'));
  return { address: listen, caFile };
}

/** With what nodes of a cluster cannot use, which nothing else says before they try. */
export function describePortals(given: string | undefined): string {
  if (!given) return 'none: volumes are not exported';
  const portals = parsePortals.parse(given).map(({ portal }) => portal);
  if (isLocal(portals))
    return `${given} (this host alone; for nodes of HPE's driver set TRIVET_ISCSI_PORTALS to port 3260 of an address)`;
  const beyond = portals.filter(portal => !isLocal([portal]) && !servesNodes([portal]));
  return beyond.length === 0
    ? given
    : `${given} (nodes of HPE's driver come to port 3260 alone, not to ${beyond.join(', ')})`;
}

const isEmulated = ({ processes }: State): string =>
  processes.some(({ name }) => name === 'azurite') ? ' (Azurite, an emulator, for trying out)' : '';

/** The doors of what runs and the next command to try, for a person. */
export function describeDoors(home: Home, state: State): string {
  const { env } = state;
  const rows: [string, string | undefined][] = [];
  if (state.partsOnly) {
    rows.push(['settings', home.environmentFile]);
    rows.push(['S3', env.TRIVET_RGW_ENDPOINT]);
    rows.push(['pools', env.TRIVET_POOLS]);
    rows.push(['try', `. ${home.environmentFile} && ./trivet migrate && npx nest start gateway --watch`]);
  } else {
    rows.push(['COSI', env.COSI_ENDPOINT]);
    rows.push([
      'S3',
      env.TRIVET_RGW_ENDPOINT && `${env.TRIVET_RGW_ENDPOINT} (region ${env.TRIVET_RGW_REGION ?? 'default'})`,
    ]);
    rows.push(['Azure Blob', env.TRIVET_AZURE_ENDPOINT && `${env.TRIVET_AZURE_ENDPOINT}${isEmulated(state)}`]);
    const csp = cspDoors(state);
    if (csp) {
      rows.push(['CSP', [csp.url, csp.tlsUrl].filter(Boolean).join(', ')]);
      rows.push(['pools', env.TRIVET_POOLS]);
      rows.push(['CBT', cbtDoors(home, state)?.address]);
      rows.push(['CSI', env.TRIVET_CSI_ENDPOINT]);
      rows.push(['iSCSI', describePortals(env.TRIVET_ISCSI_PORTALS)]);
      rows.push(['iSCSI, Ceph', env.TRIVET_RBD_PORTALS]);
    }
    rows.push(['dashboard', `${adminUrl(state)}/ (log in as ${ADMIN_LOGIN})`]);
    rows.push(['health, metrics', `http://${env.TRIVET_HTTP_LISTEN}/readyz, /livez, /metrics`]);
    rows.push(['key file', `${env.TRIVET_KEK_FILE} (keep a copy: without it every stored credential is lost)`]);
    rows.push(['passwords', `${home.environmentFile}, ${home.file('secrets')}`]);
    rows.push(['credentials', `${home.credentialsFile} (of ${ADMIN_LOGIN}, its API token, and the user of CSP)`]);
    const canShow = env.COSI_ENDPOINT !== undefined || (csp !== undefined && env.TRIVET_ISCSI_PORTALS !== undefined);
    rows.push(['try', canShow ? './trivet demo' : './trivet doctor']);
  }
  for (const { name, from, to } of state.moved ?? [])
    rows.push([`port of ${name}`, `${to} instead of ${from}, which somebody else has`]);
  for (const { part, reason, remedy } of state.skipped) {
    rows.push([`no ${part}`, `${reason.split('\n')[0]}; remedy: ${remedy}`]);
  }
  const shown = rows.filter((row): row is [string, string] => row[1] !== undefined);
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join('\n');
}
