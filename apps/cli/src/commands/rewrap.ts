import { rewrapSecrets } from '#tenancy/setup/rewrap';
import { asOperator } from '../operator.js';

/** The end of a rotation: the first line of the key file is the new key, and every process has been restarted with it. */
export const rewrap = (): Promise<void> =>
  asOperator(async ({ database, secrets }) => {
    const { rewrapped, total } = await rewrapSecrets(database, secrets);
    process.stdout.write(
      `${total} secrets, ${rewrapped} of them sealed anew; older keys are no longer needed, but by backups from before\n`,
    );
  });
