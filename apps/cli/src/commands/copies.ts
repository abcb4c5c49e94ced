import { command, flag, needed, noun, one, parsed, text } from '../command-line/command.js';
import { OVER_CSP, wholeNumber } from './options.js';

const folder = one('as `backup create` wrote it');

export const BACKUP = noun('backup', 'backups of volumes in folders of yours, by their changed blocks', [
  command(
    'create',
    'back a volume up into a folder: everything at first, then what changed',
    'data /srv/backups/data',
    {
      was: ['backup'],
      args: { volume: one('name or id'), folder: one('of this volume alone') },
      options: {
        full: flag('everything again'),
        snapshot: text('snapshot', 'back up this one of the volume, by name or id; it stays'),
        force: flag('take the snapshot although it stalls those who write to the volume'),
        deleteSnapshot: flag('keep no snapshot at the appliance until the next backup'),
        verify: flag('read what is stored and the whole snapshot once more, and compare'),
        json: flag('print the manifest of the new point'),
        ...OVER_CSP,
      },
      run: async given => (await import('./backup.js')).backUp(given),
    },
  ),
  command(
    'check',
    'read all that a folder of backups holds and compare it with its checksums; needs no appliance',
    '/srv/backups/data',
    {
      args: { folder },
      options: { json: flag('for scripts') },
      run: async given => (await import('./backup.js')).checkBackup(given),
    },
  ),
  command(
    'restore',
    'rebuild the image of a backup as a file, and verify its checksum; needs no appliance',
    '/srv/backups/data data.img',
    {
      was: ['restore'],
      args: { folder, target: one('a file that is not there yet') },
      options: { point: parsed('n', 'which one; else the newest', wholeNumber(1)) },
      run: async given => (await import('./backup.js')).restoreBackup(given),
    },
  ),
  command('prune', 'remove all backups of a folder but the newest; needs no appliance', '/srv/backups/data --keep 30', {
    was: ['prune'],
    args: { folder },
    options: { keep: needed(parsed('n', 'how many points stay', wholeNumber(1))) },
    run: async given => (await import('./backup.js')).pruneBackups(given),
  }),
]);
