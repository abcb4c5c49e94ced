import { lstatSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { MAX_SOCKET_PATH } from '#platform/config/setting-forms';
import { type Finding, fail, ok } from './check.js';

const ANSWER_MS = 5_000;
/** What each side of a socket's protocol is asked: whether it serves. */
const QUESTIONS = { cosi: '/grpc.health.v1.Health/Check', csi: '/csi.v1.Identity/Probe' } as const;
export type SocketProtocol = keyof typeof QUESTIONS;

/** A door that stands open to others, has nobody behind it, or is not there. */
export async function checkSocket(name: string, path: string, protocol: SocketProtocol): Promise<Finding[]> {
  const log = 'see the log of the gateway';
  const bytes = Buffer.byteLength(path);
  if (bytes > MAX_SOCKET_PATH)
    return [fail(name, `${path} has ${bytes} bytes`, `at most ${MAX_SOCKET_PATH} bytes are possible`)];
  let stat: ReturnType<typeof lstatSync>;
  try {
    stat = lstatSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return [fail(name, code === 'ENOENT' ? `${path} does not exist` : `${path}: ${code}`, log)];
  }
  if (!stat.isSocket()) return [fail(name, `${path} is no socket`, 'remove it; the gateway makes its socket again')];
  const found: Finding[] = [];
  if ((stat.mode & 0o007) !== 0)
    found.push(fail(name, `everybody may connect to ${path} (mode ${octal(stat.mode)})`, `chmod o= ${path}`));
  const folder = dirname(path);
  const { mode } = statSync(folder);
  if ((mode & 0o002) !== 0)
    found.push(
      fail(name, `everybody may put another socket into ${folder} (mode ${octal(mode)})`, `chmod o-w ${folder}`),
    );
  const silent = await answer(path, QUESTIONS[protocol]);
  if (silent !== undefined)
    found.push(fail(name, `${path} does not answer: ${silent}`, `does the gateway run? ${log}`));
  return found.length > 0 ? found : [ok(name, `${path}, mode ${octal(stat.mode)}, answers`)];
}

const octal = (mode: number): string => (mode & 0o7777).toString(8).padStart(4, '0');

/** Undefined: it serves. */
function answer(path: string, method: string): Promise<string | undefined> {
  const client = new Client(`unix:${path}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const asIs = (bytes: Buffer): Buffer => bytes;
  return new Promise<string | undefined>(resolve => {
    const done = (error: ServiceError | null, reply?: Buffer): void => {
      if (error) resolve(error.code === status.UNIMPLEMENTED ? 'another program serves it' : error.details);
      // Field 1 of a health reply: 1 is SERVING. A probe answers with ready: true, or nothing at all.
      else resolve(method.includes('Health') && reply?.[1] !== 1 ? 'it does not serve now' : undefined);
    };
    client.makeUnaryRequest(method, asIs, asIs, Buffer.alloc(0), { deadline: Date.now() + ANSWER_MS }, done);
  }).finally(() => client.close());
}
