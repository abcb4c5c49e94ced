import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { NotTaken, reasonOf } from '#alerts/deliver/post';
import { withoutSecrets } from '#alerts/deliver/without-secrets';
import { oneLine } from '#alerts/messages/content';
import type { Mail } from '#alerts/messages/mail';
import type { Target } from '#alerts/messages/target';
import type { OuterAddresses } from '#platform/config/outer-addresses';

type SmtpTarget = Extract<Target, { kind: 'smtp' }>;

/** From the name's look-up to the server's last answer. */
const BOUND_MS = 20_000;
const CONNECT_MS = 5_000;
const ANSWER_MS = 10_000;
const SHOWN = 200;

/** Loaded by the first mail: most processes send none. */
const mailer = (): typeof import('nodemailer') => createRequire(import.meta.url)('nodemailer');

/**
 * Rejects with NotTaken unless the server takes it for one address at least. One that it refuses is no reason to send it again:
 * the others would get it at each try.
 * @returns for people, which addresses it refuses; undefined: none
 */
export async function sendMail(
  outer: OuterAddresses,
  target: SmtpTarget,
  mail: Mail,
  { boundMs = BOUND_MS }: { boundMs?: number } = {},
): Promise<string | undefined> {
  const { host, port, security, user, password, from, to } = target;
  const signal = AbortSignal.timeout(boundMs);
  const late = () => new NotTaken(`${host}: not done within ${boundMs / 1_000} s`);
  // Without TLS nothing leaves one's own networks.
  const refuses = (address: string) => outer.isRefused(address) || (security === 'none' && !outer.isOwn(address));
  const address = await within(signal, outer.addressOf(host, refuses)).catch(error => {
    throw signal.aborted ? late() : new NotTaken(reasonOf(host, error));
  });
  const transport = mailer().createTransport({
    // What was checked is connected to; whose certificate it must be says the name.
    host: address,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    tls: isIP(host) === 0 ? { servername: host } : {},
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: ANSWER_MS,
    // A server that is slow to hang up holds nothing here.
    socketCloseTimeout: 0,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
  });
  try {
    const { rejected } = await transport.sendMail({
      // As objects: no part of an address is read as a list or a name.
      from: { name: 'Trivet', address: from },
      to: to.map(one => ({ name: '', address: one })),
      subject: mail.subject,
      text: mail.text,
      messageId: mail.messageId,
      references: mail.thread,
      headers: { ...mail.headers },
      signal,
    });
    if (rejected.length === 0) return undefined;
    return `${host} refuses ${rejected.join(', ')}`;
  } catch (error) {
    if (signal.aborted) throw late();
    const { response, message } = error as { response?: string; message: string };
    throw new NotTaken(`${host}: ${withoutSecrets(oneLine(response ?? message), target).slice(0, SHOWN)}`);
  } finally {
    transport.close();
  }
}

/** Rejects when the time is over, whatever becomes of it. */
function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}
