import type { Command } from 'commander';
import { EXIT } from '../api/api-error.js';
import { runBackup } from '../backup/backup-job.js';
import { BackupStore, withFolder } from '../backup/backup-store.js';
import { describeCheck, runCheck } from '../backup/check-job.js';
import { type DoorOptions, withApi, withDoor } from '../backup/door.js';
import { interruptible } from '../backup/interruptible.js';
import { Progress } from '../backup/progress.js';
import { describeDamage } from '../backup/stored-image.js';
import { LauncherError } from '../home.js';

interface Options extends DoorOptions {
  full?: boolean;
  snapshot?: string;
  force?: boolean;
  deleteSnapshot?: boolean;
  verify?: boolean;
  json?: boolean;
}

async function backUp(volume: string, folder: string, options: Options): Promise<void> {
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

async function check(folder: string, json: boolean | undefined): Promise<void> {
  const report = await runCheck(await BackupStore.open(folder), new Progress(`check of ${folder}`));
  if (json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else if (report.damages.length === 0) process.stdout.write(`${describeCheck(report)}\n`);
  else process.stdout.write(report.damages.map(damage => `${describeDamage(damage)}\n`).join(''));
  if (report.damages.length > 0) throw new LauncherError(`${folder} is damaged: ${report.damages.length} findings`);
}

export function register(program: Command): void {
  const backup = withDoor(
    program
      .command('backup')
      .description('back a volume up into a folder: everything at first, then what changed')
      .argument('<volume>', 'name or id')
      .argument('<folder>', 'of this volume alone')
      .option('--full', 'everything again')
      .option('--snapshot <snapshot>', 'back up this one of the volume, by name or id; it stays')
      .option('--force', 'take the snapshot although it stalls those who write to the volume')
      .option('--delete-snapshot', 'keep no snapshot at the appliance until the next backup')
      .option('--verify', 'read what is stored and the whole snapshot once more, and compare')
      .option('--json', 'print the manifest of the new point'),
  ).action(backUp);
  backup
    .command('check')
    .description('read all that a folder of backups holds and compare it with its checksums; needs no appliance')
    .argument('<folder>', 'as backup wrote it')
    .action((folder: string, _: object, command: Command) =>
      check(folder, command.optsWithGlobals<{ json?: boolean }>().json),
    );
}
