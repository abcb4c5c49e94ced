import type { Command } from 'commander';
import { EXIT } from '../api/api-error.js';
import { BackupStore, withFolder } from '../backup/backup-store.js';
import { Progress } from '../backup/progress.js';
import { runPrune } from '../backup/prune-job.js';
import { LauncherError } from '../home.js';

export function register(program: Command): void {
  program
    .command('prune')
    .description('remove all backups of a folder but the newest; needs no appliance')
    .argument('<folder>', 'as backup wrote it')
    .requiredOption('--keep <n>', 'how many points stay')
    .action(async (folder: string, { keep }: { keep: string }) => {
      if (!/^[1-9]\d{0,8}$/.test(keep))
        throw new LauncherError(`--keep: expected a number from 1 on, got ${keep}`, EXIT.data);
      await BackupStore.open(folder);
      await withFolder(folder, async () => {
        const progress = new Progress(`prune ${folder}`);
        const say = (line: string): void => void process.stdout.write(`${line}\n`);
        await runPrune(await BackupStore.open(folder), { keep: Number(keep), say, progress });
      });
    });
}
