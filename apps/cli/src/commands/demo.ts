import type { Command } from 'commander';
import { readCredentials } from '../credentials.js';
import type { BlockDoor } from '../demo/block-job.js';
import { cspDoors } from '../doors.js';
import { environment } from '../environment.js';
import { Home, LauncherError } from '../home.js';
import { livingState, type State } from '../state.js';

/** What the demo can reach, and why it cannot reach the rest. */
interface Doors {
  cosi?: string;
  block?: BlockDoor;
  missing: string[];
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

export function register(program: Command): void {
  program
    .command('demo')
    .description('walk the main jobs with real clients: a bucket over COSI and S3, a volume over CSP and iSCSI')
    .action(async () => {
      const { cosi, block, missing } = environment.COSI_ENDPOINT
        ? { cosi: environment.COSI_ENDPOINT, block: undefined, missing: [] }
        : doorsOfHome();
      if (cosi !== undefined) {
        const { runMainJob } = await import('../demo/main-job.js');
        await runMainJob(cosi, say);
      }
      if (block !== undefined) {
        const { runBlockJob } = await import('../demo/block-job.js');
        await runBlockJob(block, say);
      }
      for (const reason of missing) say(`skipped: ${reason}`);
      say('demo: done, and nothing is left behind');
    });
}

function doorsOfHome(): Doors {
  const home = Home.find();
  const state = home && livingState(home);
  if (home === undefined || state?.state !== 'ready')
    throw new LauncherError('nothing runs here; ./trivet up --detach, then demo');
  if (state.partsOnly) throw new LauncherError('only parts run here; ./trivet down, then up --detach');
  const { COSI_ENDPOINT: cosi } = state.env;
  const csp = cspDoors(state);
  const login = readCredentials(home).csp;
  const missing: string[] = [];
  let block: BlockDoor | undefined;
  if (cosi === undefined) missing.push(`no COSI socket is served here${whyNot(state, 'rgw')}`);
  if (csp === undefined) missing.push(`no pool of block volumes${whyNot(state, 'xfs')}`);
  else if (!state.env.TRIVET_ISCSI_PORTALS) missing.push(`volumes are not exported here${whyNot(state, 'tgt')}`);
  else if (login === undefined) missing.push(`${home.credentialsFile} has no user of CSP`);
  else block = { url: csp.url, ...login };
  if (cosi === undefined && block === undefined) throw new LauncherError(missing.join('; '));
  return { cosi, block, missing };
}

function whyNot({ skipped }: State, part: string): string {
  const found = skipped.find(each => each.part === part);
  return found === undefined ? '' : ` (${found.reason.split('\n')[0]})`;
}
