import { command, flag, noun, one } from '../command-line/command.js';

/** Trivet's own state, as one file; backups of volumes are another matter. */
export const APPLIANCE_STATE = noun('appliance', "Trivet's own state: its database and settings, as one file", [
  command(
    'backup',
    'write database and settings to a file, while everything runs; the key file is not in it',
    '/backup/trivet-monday.dump',
    {
      args: { file: one('that is made') },
      run: async given => (await import('../state-backup/back-up.js')).backUp(given),
    },
  ),
  command(
    'check',
    'restore a file of `appliance backup` into a PostgreSQL of its own, which goes again, and open what is sealed',
    '/backup/trivet-monday.dump',
    {
      args: { file: one('of `appliance backup`') },
      run: async given => (await import('../state-backup/check.js')).check(given),
    },
  ),
  command(
    'restore',
    'fill an empty database with a file of `appliance backup`: that of TRIVET_DATABASE_OWNER_URL, or of a home that is down',
    '/backup/trivet-monday.dump',
    {
      args: { file: one('of `appliance backup`') },
      options: { replace: flag('of a home: move the database that it has aside') },
      run: async given => (await import('../state-backup/restore.js')).restore(given),
    },
  ),
]);
