import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bareEnvironment, environment, surroundings } from '../environment.js';
import { type Home, writeWhole } from '../home.js';
import { findFreePort } from '../ports.js';
import { listensAt } from '../processes/listeners.js';
import { findProgram, runCommand } from './command.js';
import { keep, keptFolder } from './kept.js';
import { forTests, type Part, type PartContext } from './part.js';

/** Python's, and so none of ours: kept beside, for runs that ask for it. */
const VERSION = '5.2.5';
const SORT = 'moto';
const INSTALL_MS = 10 * 60_000;
const UNTESTED = 'buckets on S3 with IAM are not tested';

const isInstalled = (): boolean => existsSync(keptFolder(SORT, VERSION));
const isAskedFor = (): boolean => (environment.TRIVET_REQUIRE ?? '').split(',').includes('moto');
const placeFile = (home: Home): string => home.file('secrets', 'moto.json');
/** Where it listens, with whose keys; there is none while it is not started. */
export const motoOf = (home: Home): string | undefined =>
  existsSync(placeFile(home)) ? readFileSync(placeFile(home), 'utf8') : undefined;

/** moto's server: S3, IAM and STS of AWS in memory, which judges each request by the policies of its user. */
export const motoPart: Part = {
  ...forTests('moto', () => {
    if (isInstalled()) return undefined;
    const lack = { reason: `moto is not installed; ${UNTESTED}`, packages: [] };
    if (!isAskedFor()) return { ...lack, remedy: 'run with moto in TRIVET_REQUIRE, which installs it once' };
    return findProgram('python3') === undefined ? { ...lack, remedy: 'install python3 and python3-venv' } : undefined;
  }),

  async start(context: PartContext): Promise<Record<string, string>> {
    const { home, signal } = context;
    if (!context.install && !isInstalled())
      throw new Error(`moto is not installed, and nothing shall be downloaded; ${UNTESTED}`);
    const folder = await keep({ sort: SORT, name: VERSION, make: begun => install(begun, context), signal });
    const port = await findFreePort();
    // No program of the environment: those name the folder in which it was made.
    await context.run({
      name: 'moto',
      command: join(folder, 'bin', 'python3'),
      args: ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)],
      env: {
        ...bareEnvironment(),
        ...context.mark,
        S3_IGNORE_SUBDOMAIN_BUCKETNAME: 'true',
        MOTO_S3_ALLOW_CROSSACCOUNT_ACCESS: 'false',
      },
      cwd: home.path,
      logFile: home.log('moto'),
      stopSignal: 'SIGTERM',
      stopGraceMs: 5_000,
      readyMs: 60_000,
      ports: [port],
      ready: async pid => listensAt(pid, port),
    });
    const endpoint = `http://127.0.0.1:${port}`;
    writeWhole(placeFile(home), JSON.stringify({ endpoint, ...(await beginJudging(endpoint)) }));
    return {};
  },
};

/** Makes who may do everything; from then on everybody is asked for who they are. */
async function beginJudging(endpoint: string): Promise<{ accessKeyId: string; secretAccessKey: string }> {
  const ask = async (parameters: Record<string, string>): Promise<string> => {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        authorization:
          'AWS4-HMAC-SHA256 Credential=begin/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0',
      },
      body: new URLSearchParams({ Version: '2010-05-08', UserName: 'everything', ...parameters }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`moto answered ${response.status} to ${parameters.Action}`);
    return text;
  };
  const statement = { Effect: 'Allow', Action: '*', Resource: '*' };
  const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
  await ask({ Action: 'CreateUser' });
  await ask({ Action: 'PutUserPolicy', PolicyName: 'everything', PolicyDocument });
  const made = await ask({ Action: 'CreateAccessKey' });
  const [accessKeyId, secretAccessKey] = ['AccessKeyId', 'SecretAccessKey'].map(
    name => new RegExp(`<${name}>([^<]+)`).exec(made)?.[1] ?? '',
  );
  await fetch(`${endpoint}/moto-api/reset-auth`, { method: 'POST', body: '0' });
  return { accessKeyId: accessKeyId!, secretAccessKey: secretAccessKey! };
}

async function install(begun: string, { say, signal, mark }: PartContext): Promise<void> {
  say('pip installs it into a virtual environment, once; takes a minute');
  mkdirSync(begun, { mode: 0o755 });
  const options = { env: { ...surroundings(), ...mark }, signal, timeoutMs: INSTALL_MS };
  await runCommand(findProgram('python3') as string, ['-m', 'venv', begun], options);
  const packages = [`moto[s3]==${VERSION}`, 'flask', 'flask-cors'];
  await runCommand(join(begun, 'bin', 'python3'), ['-m', 'pip', 'install', '--quiet', ...packages], options);
}
