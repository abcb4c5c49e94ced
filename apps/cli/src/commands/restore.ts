import type { Command } from 'commander';
import { EXIT } from '../api/api-error.js';
import { Progress } from '../backup/progress.js';
import { runRestore } from '../backup/restore-job.js';
import { LauncherError } from '../home.js';

export function register(program: Command): void {
  program
    .command('restore')
    .description('rebuild the image of a backup as a file, and verify its checksum; needs no appliance')
    .argument('<folder>', 'as backup wrote it')
    .argument('<target>', 'a file that is not there yet')
    .option('--point <n>', 'which one; else the newest')
    .action(async (folder: string, target: string, { point }: { point?: string }) => {
      if (point !== undefined && !/^[1-9]\d{0,8}$/.test(point))
        throw new LauncherError(`--point: expected the number of a point, got ${point}`, EXIT.data);
      const progress = new Progress(`restore to ${target}`);
      await runRestore({
        folder,
        target,
        point: point === undefined ? undefined : Number(point),
        progress,
        say: line => void process.stdout.write(`${line}\n`),
      });
    });
}
