import type { Command } from 'commander';
import { rewrapSecrets } from '#tenancy/rewrap';
import { asOperator } from '../operator.js';

/** The end of a rotation: the first line of the key file is the new key, and every process has been restarted with it. */
export function register(program: Command): void {
  program
    .command('rewrap')
    .description('seal every stored secret with the first key of TRIVET_KEK_FILE, so that older keys can be removed')
    .action(() =>
      asOperator(async ({ database, secrets }) => {
        const { rewrapped, total } = await rewrapSecrets(database, secrets);
        process.stdout.write(`${total} secrets, ${rewrapped} of them sealed anew; older keys are no longer needed\n`);
      }),
    );
}
