import { afterAll, beforeAll, expect, it } from 'vitest';
import { CommandLine } from './commands/command-line.js';
import { describeAlerts } from './commands/describe-alerts.js';
import { describeAnswers } from './commands/describe-answers.js';
import { describeBackends } from './commands/describe-backends.js';
import { describeExample } from './commands/describe-example.js';
import { describeFirstRun } from './commands/describe-first-run.js';
import { describeOperations } from './commands/describe-operations.js';
import { describePurge } from './commands/describe-purge.js';
import { describeStorageHosts } from './commands/describe-storage-hosts.js';
import { describeTenants } from './commands/describe-tenants.js';
import { describeWatch } from './commands/describe-watch.js';

/** One appliance for the commands of all subjects. */
const line = new CommandLine();
beforeAll(() => line.start());
afterAll(() => line.close());

describeTenants(line);
describeBackends(line);
describePurge(line);
describeOperations(line);
describeAnswers(line);
describeStorageHosts(line);
describeAlerts(line);
describeFirstRun(line);
describeExample(line);
describeWatch(line);

it('no secret stood in an argument or in the environment of a command', () => {
  const all = [...line.seen].join('\n');
  expect(all).toContain('TRIVET_ADMIN_TOKEN_FILE');
  for (const { token, password } of [line.house.root.admin, line.house.acme.operator]) {
    expect(all).not.toContain(token);
    expect(all).not.toContain(password);
  }
  expect(all).not.toContain('secret-of-the-command-line');
});
