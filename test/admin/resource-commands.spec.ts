import { afterAll, beforeAll, expect, it } from 'vitest';
import { CommandLine } from './commands/command-line.js';
import { describeBackendChanges } from './commands/describe-backend-changes.js';
import { describeBulk } from './commands/describe-bulk.js';
import { describeClusters } from './commands/describe-clusters.js';
import { describeHosts } from './commands/describe-hosts.js';
import { describeLists } from './commands/describe-lists.js';
import { describePeople } from './commands/describe-people.js';

/** One appliance for the verbs of what a tenant has beside volumes. */
const line = new CommandLine();
beforeAll(() => line.start());
afterAll(() => line.close());

describeBackendChanges(line);
describeClusters(line);
describeHosts(line);
describeLists(line);
describeBulk(line);
describePeople(line);

it('no key of a store stood in an argument or in the environment of a command', () => {
  const all = [...line.seen].join('\n');
  expect(all).toContain('--credentials-file');
  expect(all).not.toContain('secret-of-the-command-line');
});
