import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Home, LauncherError } from '../home.js';
import { DEFAULT_PORTS, type PortName, Ports } from '../ports.js';
import { strangerAt } from '../processes/listeners.js';
import { PARTS } from '../supervisor/appliance.js';
import { each, type Finding, fail, findings, warn } from './check.js';
import { checkHome, checkKeyFile } from './host.js';
import { configOf } from './settings.js';

/** A home of which nothing runs: what the last `up` said, and what the next one would find. */
export function checkStopped(home: Home, given: Readonly<Record<string, string>>): Promise<Finding[]> {
  const look = (name: string, work: () => Finding[] | Promise<Finding[]>) =>
    findings(name, `look at ${home.path} yourself`, async () => work());
  return each([
    look('last up', () => lastUp(home)),
    look('home', () => checkHome(home)),
    look('key file', () => keyFile(home, given.TRIVET_KEK_FILE)),
    look('settings', () => {
      const config = configOf(given);
      return Array.isArray(config) ? config : [];
    }),
    look('ports', () => takenPorts(home)),
    look('parts', () => missingParts(given)),
  ]);
}

function lastUp(home: Home): Finding[] {
  const failure = home.lastFailure();
  if (failure === undefined) return [];
  const said = failure.message.split('\n').map(line => line.trim());
  return [fail('last up', `failed at ${failure.at}: ${said.join(' | ')}`, 'mend what it says, then ./trivet up')];
}

function keyFile(home: Home, given: string | undefined): Finding[] | Promise<Finding[]> {
  if (given) return checkKeyFile(resolve(home.path, given));
  if (existsSync(home.kekFile)) return checkKeyFile(home.kekFile);
  try {
    home.requireKek();
    return [];
  } catch (error) {
    if (!(error instanceof LauncherError)) throw error;
    const [detail = '', remedy = ''] = error.message.split('\n');
    return [fail('key file', detail, remedy.trim())];
  }
}

function takenPorts(home: Home): Finding[] {
  const ports = new Ports(home);
  return (Object.keys(DEFAULT_PORTS) as PortName[]).flatMap(name => {
    const port = ports.kept(name);
    const stranger = port === undefined ? undefined : strangerAt(undefined, port);
    if (stranger === undefined) return [];
    return [warn(`port of ${name}`, `${port} is taken by ${stranger}`, 'up takes another one, and says which')];
  });
}

async function missingParts(given: Readonly<Record<string, string>>): Promise<Finding[]> {
  const ours = PARTS.filter(part => !given[part.addressVariable]);
  const lacks = await Promise.all(ours.map(async part => ({ part, lack: await part.check() })));
  return lacks.flatMap(({ part, lack }) => (lack === undefined ? [] : [warn(part.name, lack.reason, lack.remedy)]));
}
