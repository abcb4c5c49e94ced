import { afterAll, beforeAll } from 'vitest';
import { CommandLine } from './commands/command-line.js';
import { describeVolumes } from './commands/describe-volumes.js';

const line = new CommandLine();
beforeAll(() => line.start());
afterAll(() => line.close());

describeVolumes(line);
