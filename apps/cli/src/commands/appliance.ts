import { choice, choiceList, command, flag, hidden, manyMaybe, oneOf, text } from '../command-line/command.js';
import { install } from './options.js';

/** Of the appliance as a whole, on its host; and of the repository. */
export const APPLIANCE = [
  command('up', 'start what is not configured by an address, then gateway and worker', '--detach', {
    options: {
      detach: flag('return when ready, and leave the supervisor behind'),
      partsOnly: flag('start only the parts, and print the file with the settings for a gateway of your own'),
      with: choiceList('parts', ['rbd'], 'rbd: a pool for volumes in its Ceph, too (packages tgt and tgt-rbd)'),
      ...install,
      behind: hidden(flag('')),
    },
    run: async given => (await import('./up.js')).up(given),
  }),
  command('down', 'stop what this home started', '', {
    options: {
      purge: flag('and delete the home with all its data'),
      yes: flag('with --purge: without a question, though a key file and data go'),
    },
    run: async given => (await import('./down.js')).down(given),
  }),
  command('status', 'what runs, where its doors are, and how often it was restarted', '--json', {
    options: { json: flag('stable keys, for scripts') },
    run: async given => (await import('./status.js')).status(given),
  }),
  command('doctor', 'check host, home, parts, processes, sockets and backends, and say what to do', '', {
    options: { json: flag('for scripts') },
    run: async given => (await import('./doctor.js')).doctor(given),
  }),
  command('demo', 'walk the main jobs with real clients: a bucket over COSI and S3, a volume over CSP and iSCSI', '', {
    run: async () => (await import('./demo.js')).demo(),
  }),
  command(
    'migrate',
    'bring the database to this release, and register the backends that the environment names; needs no gateway',
    '',
    {
      options: {
        restored: flag('the database was put back from a backup: it is the one that counts from now on'),
        check: flag('say what would be done to this database and whether it would be refused; changes nothing'),
      },
      run: async ({ check, restored }) => {
        const { checkMigration, migrateDatabase } = await import('./migrate.js');
        await (check ? checkMigration() : migrateDatabase({ restored }));
      },
    },
  ),
  command(
    'rewrap',
    'seal every stored secret with the first key of TRIVET_KEK_FILE, so that older keys can be removed; needs no gateway',
    '',
    {
      run: async () => (await import('./rewrap.js')).rewrap(),
    },
  ),
  command(
    'completion',
    'print the script that completes these commands in a shell',
    'bash > ~/.local/share/bash-completion/completions/trivet',
    {
      args: { shell: oneOf(['bash', 'zsh', 'fish'], 'which') },
      run: async ({ shell }, table) =>
        void process.stdout.write((await import('../command-line/completion.js')).completionScript(table, shell)),
    },
  ),
  command(
    'openapi',
    'write docs/openapi.json, docs/openapi-cbt.json, docs/problems.md, docs/verbs.md and a table of docs/buckets.md, which are made of the code',
    '',
    {
      run: async (_, table) => (await import('./openapi.js')).openapi(table),
    },
  ),
  command('schema', 'write docs/schema.sql, which is made of the migrations, by a PostgreSQL of its own', '', {
    run: async () => (await import('./schema.js')).schema(),
  }),
  command(
    'manifest',
    'write deploy/kubernetes, which is what the chart renders with its defaults, by a helm that it installs once',
    '',
    {
      run: async () => (await import('./manifest.js')).manifest(),
    },
  ),
  command('bench', 'measure against the limits of docs/performance.md, on parts of its own', 'cosi --quick', {
    args: {
      legs: manyMaybe(
        'cosi, creation, csp, cbt, connector, admin, fairness, idle, rbd, start, memory or scale; all but the last two, which take long, when none is named',
      ),
    },
    options: {
      quick: flag('short rounds: proves that it works, not how fast it is'),
      minutes: text('n', 'how long the load of memory lasts, instead of an hour'),
      volumes: text('n', 'how many volumes the largest appliance of scale has, instead of a million'),
      backend: text('kind', 'cosi: rgw, s3, azure, garage or gcs, instead of the store without delay'),
      json: text('file', 'write the figures there too'),
      ...install,
    },
    run: async given => (await import('./bench.js')).bench(given),
  }),
  command('test', 'run lint, type check and all tests against real parts of their own', 'test/csp', {
    args: { filters: manyMaybe('only test files whose path contains one of these') },
    options: {
      project: choice('name', ['unit', 'parts'], 'only one of the two'),
      quick: flag('lint, types, unit tests and the main ways of each interface, in less than five minutes'),
      long: flag('more rounds of the random tests'),
      ...install,
    },
    run: async given => (await import('./test.js')).test(given),
  }),
];
