import { counted } from '#platform/counted';
import { EXIT } from '../api/api-error.js';
import { runBackup } from '../backup/backup-job.js';
import { BackupStore, withFolder } from '../backup/backup-store.js';
import { describeCheck, runCheck } from '../backup/check-job.js';
import { interruptible } from '../backup/interruptible.js';
import { Progress } from '../backup/progress.js';
import { runPrune } from '../backup/prune-job.js';
import { runRestore } from '../backup/restore-job.js';
import { describeDamage } from '../backup/stored-image.js';
import { type DoorOptions, withApi } from '../csp/door.js';
import { LauncherError } from '../home.js';

interface Options extends DoorOptions {
  volume: string;
  folder: string;
  full?: boolean;
  snapshot?: string;
  force?: boolean;
  deleteSnapshot?: boolean;
  verify?: boolean;
  json?: boolean;
}

export async function backUp({ volume, folder, ...options }: Options): Promise<void> {
  if (options.snapshot !== undefined && options.deleteSnapshot)
    throw new LauncherError('--delete-snapshot: a snapshot that is given by --snapshot stays', EXIT.data);
  const output = options.json ? process.stderr : process.stdout;
  const progress = new Progress(`backup of ${volume}`);
  const say = (line: string): void => {
    progress.end();
    output.write(`${line}\n`);
  };
  const point = await withFolder(folder, () =>
    interruptible('the next backup into this folder completes it', signal =>
      withApi({ ...options, signal, say: line => progress.tell(line) }, api =>
        runBackup(api, {
          folder,
          volume,
          full: options.full ?? false,
          snapshot: options.snapshot,
          force: options.force ?? false,
          deleteSnapshot: options.deleteSnapshot ?? false,
          verify: options.verify ?? false,
          progress,
          say,
          signal,
        }),
      ),
    ),
  );
  if (options.json) process.stdout.write(`${JSON.stringify(point, null, 2)}\n`);
}

export async function checkBackup({ folder, json }: { folder: string; json?: boolean }): Promise<void> {
  const report = await runCheck(await BackupStore.open(folder), new Progress(`check of ${folder}`));
  if (json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else if (report.damages.length === 0) process.stdout.write(`${describeCheck(report)}\n`);
  else process.stdout.write(report.damages.map(damage => `${describeDamage(damage)}\n`).join(''));
  if (report.damages.length > 0)
    throw new LauncherError(`${folder} is damaged: ${counted(report.damages.length, 'finding')}`);
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

export const restoreBackup = (given: { folder: string; target: string; point?: number }) =>
  runRestore({ ...given, progress: new Progress(`restore to ${given.target}`), say });

export async function pruneBackups({ folder, keep }: { folder: string; keep: number }): Promise<void> {
  // Before a lock is made in a folder that holds no backups.
  await BackupStore.open(folder);
  await withFolder(folder, async () =>
    runPrune(await BackupStore.open(folder), { keep, say, progress: new Progress(`prune ${folder}`) }),
  );
}
