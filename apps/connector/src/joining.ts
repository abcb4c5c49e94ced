import { X509Certificate } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { type Config, ConfigError, readSecretFile } from '#platform/config/config';
import { type Listen } from '#platform/config/setting-forms';
import { fingerprintOf, readJoinToken } from '#platform/crypto/join-token';
import type { Logger } from '#platform/logging/log';
import { VERSION } from '#platform/process/boot';
import { GATEWAY_NAME } from '#protocol/enrolment';
import { ControlClient } from './control-client.js';
import { type Identity, type IdentityFile, ownerOf } from './identity.js';

const CONNECT_MS = 5_000;
/** More than a call to a gateway and the writing of a file take. */
const WAIT_FOR_ANOTHER_MS = 10_000;
const LOOK_MS = 250;

/**
 * By the join token, at the first gateway that answers. One that is refused may have been used by another connector that shares
 * the file: what that one writes is taken. Throws ConfigError when the token lets nobody in.
 */
export async function joinOnce(
  config: Pick<Config, 'TRIVET_JOIN_TOKEN_FILE'>,
  gateways: readonly Listen[],
  file: IdentityFile,
  log: Logger,
): Promise<Identity> {
  const path = config.TRIVET_JOIN_TOKEN_FILE;
  if (path === undefined)
    throw new ConfigError(
      `TRIVET_JOIN_TOKEN_FILE: required, since ${file.path} has no certificate that is still good: trivet cluster join-token`,
    );
  const token = readJoinToken(readSecretFile('TRIVET_JOIN_TOKEN_FILE', path));
  if (!token) throw new ConfigError(`TRIVET_JOIN_TOKEN_FILE: ${path} holds no join token`);
  let failed: unknown;
  for (const address of gateways) {
    try {
      const authority = await findAuthority(address, token.fingerprint);
      const { key, request } = await file.keyToJoin();
      const client = new ControlClient(address, { authority });
      const certificate = await client.join(token.secret, request, VERSION).finally(() => client.close());
      const identity = { key, certificate, authority };
      file.write(identity);
      return identity;
    } catch (error) {
      // Another gateway would say the same.
      if (isRefusal(error)) {
        const written = error.code === PERMISSION_DENIED && (await writtenByAnother(file, log));
        if (written) return written;
        throw new ConfigError(`TRIVET_JOIN_TOKEN_FILE: ${error.details}`);
      }
      failed = error;
    }
  }
  throw failed;
}

const PERMISSION_DENIED = 7;
const ALREADY_EXISTS = 6;
const isRefusal = (error: unknown): error is { code: number; details: string } =>
  [PERMISSION_DENIED, ALREADY_EXISTS].includes((error as { code?: number }).code ?? -1);

/** undefined: nobody wrote one that is good. */
async function writtenByAnother(file: IdentityFile, log: Logger): Promise<Identity | undefined> {
  const good = () => {
    const identity = file.read();
    return identity && ownerOf(identity) && identity;
  };
  const until = performance.now() + WAIT_FOR_ANOTHER_MS;
  let found = good();
  if (!found)
    log.warn(
      { file: file.path },
      'the join token is refused; waits for the identity of another connector that used it',
    );
  while (!found && performance.now() < until) {
    await delay(LOOK_MS);
    found = good();
  }
  if (found) log.info({ file: file.path }, 'goes on with the identity that another connector has written');
  return found;
}

/** Asks a gateway for its authority, and takes it when it is the one of the token: PEM. Nothing is told to that gateway yet. */
function findAuthority({ host, port }: Listen, fingerprint: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host, port, servername: GATEWAY_NAME, ALPNProtocols: ['h2'], rejectUnauthorized: false };
    const socket = connect(options, () => {
      let shown: X509Certificate | undefined = socket.getPeerX509Certificate();
      while (shown && fingerprintOf(shown) !== fingerprint) shown = shown.issuerCertificate;
      socket.destroy();
      if (shown) resolve(shown.toString());
      else reject(new Error(`the gateway at ${host}:${port} is not of the authority that the join token names`));
    });
    socket.setTimeout(CONNECT_MS, () => socket.destroy(new Error(`${host}:${port} does not answer`)));
    socket.once('error', reject);
  });
}
