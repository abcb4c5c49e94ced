import { readSecretFile } from '#platform/config/config';
import { CSP_USER } from '#tenancy/credentials/login-name';
import { readCredentials } from '../credentials.js';
import type { ReaderDoor } from '../csp/reader-api.js';
import { cspDoors } from '../doors.js';
import { environment } from '../environment.js';
import { Home, LauncherError } from '../home.js';
import { requireReady, type State } from '../state.js';

/** What the demo can reach, and why it cannot reach the rest. */
interface Doors {
  cosi?: string;
  block?: ReaderDoor;
  /** The same with volumes as images of Ceph. */
  images?: ReaderDoor;
  missing: string[];
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

export async function demo(): Promise<void> {
  const { cosi, block, images, missing }: Doors = environment.COSI_ENDPOINT
    ? { cosi: environment.COSI_ENDPOINT, block: givenDoor(), missing: [] }
    : doorsOfHome();
  if (cosi !== undefined) {
    const { runMainJob } = await import('../demo/main-job.js');
    await runMainJob(cosi, say);
  }
  for (const door of [block, images]) {
    if (door === undefined) continue;
    const { runBlockJob } = await import('../demo/block-job.js');
    await runBlockJob(door, say);
  }
  for (const reason of missing) say(`skipped: ${reason}`);
  say('demo: done, and nothing is left behind');
}

/** Beside a gateway that runs elsewhere: in a container. */
function givenDoor(): ReaderDoor | undefined {
  const { TRIVET_ADMIN_URL: url, TRIVET_CSP_PASSWORD_FILE: file } = environment;
  if (!url || !file) return undefined;
  return { url, username: CSP_USER, password: readSecretFile('TRIVET_CSP_PASSWORD_FILE', file) };
}

function doorsOfHome(): Doors {
  const { home, state } = requireReady(Home.find(), 'set COSI_ENDPOINT to a socket elsewhere');
  if (state.partsOnly) throw new LauncherError('only parts run here; ./trivet down, then up --detach');
  const { COSI_ENDPOINT: cosi } = state.env;
  const csp = cspDoors(state);
  const login = readCredentials(home).csp;
  const missing: string[] = [];
  let block: ReaderDoor | undefined;
  if (cosi === undefined) missing.push(`no COSI socket is served here${whyNot(state, 'rgw')}`);
  if (csp === undefined) missing.push(`no pool of block volumes${whyNot(state, 'xfs')}`);
  else if (!state.env.TRIVET_ISCSI_PORTALS) missing.push(`volumes are not exported here${whyNot(state, 'tgt')}`);
  else if (login === undefined) missing.push(`${home.credentialsFile} has no user of CSP`);
  else block = { url: csp.url, ...login };
  if (cosi === undefined && block === undefined) throw new LauncherError(missing.join('; '));
  const images = block && state.env.TRIVET_RBD_PORTALS ? { ...block, backend: 'ceph' } : undefined;
  return { cosi, block, images, missing };
}

function whyNot({ skipped }: State, part: string): string {
  const found = skipped.find(each => each.part === part);
  return found === undefined ? '' : ` (${found.reason.split('\n')[0]})`;
}
