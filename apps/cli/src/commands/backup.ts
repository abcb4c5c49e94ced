import type { Command } from 'commander';
import { runBackup } from '../backup/backup-job.js';
import { withFolder } from '../backup/backup-store.js';
import { type DoorOptions, withApi, withDoor } from '../backup/door.js';
import { Progress } from '../backup/progress.js';

interface Options extends DoorOptions {
  full?: boolean;
  deleteSnapshot?: boolean;
  verify?: boolean;
  json?: boolean;
}

export function register(program: Command): void {
  withDoor(
    program
      .command('backup')
      .description('back a volume up into a folder: everything at first, then what changed')
      .argument('<volume>', 'name or id')
      .argument('<folder>', 'of this volume alone')
      .option('--full', 'everything again')
      .option('--delete-snapshot', 'keep no snapshot at the appliance until the next backup')
      .option('--verify', 'read the whole snapshot once more and compare')
      .option('--json', 'print the manifest of the new point'),
  ).action((volume: string, folder: string, options: Options) =>
    withFolder(folder, () =>
      withApi(options, async api => {
        const output = options.json ? process.stderr : process.stdout;
        const progress = new Progress(`backup of ${volume}`);
        const point = await runBackup(api, {
          folder,
          volume,
          full: options.full ?? false,
          deleteSnapshot: options.deleteSnapshot ?? false,
          verify: options.verify ?? false,
          progress,
          say: line => {
            progress.end();
            output.write(`${line}\n`);
          },
        });
        if (options.json) process.stdout.write(`${JSON.stringify(point, null, 2)}\n`);
      }),
    ),
  );
}
