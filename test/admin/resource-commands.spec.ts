import { afterAll, beforeAll } from 'vitest';
import { CommandLine } from './commands/command-line.js';
import { describeHosts } from './commands/describe-hosts.js';
import { describePeople } from './commands/describe-people.js';
import { describeVolumes } from './commands/describe-volumes.js';

/** One appliance for the verbs of all things that a tenant has. */
const line = new CommandLine();
beforeAll(() => line.start());
afterAll(() => line.close());

describeVolumes(line);
describeHosts(line);
describePeople(line);
