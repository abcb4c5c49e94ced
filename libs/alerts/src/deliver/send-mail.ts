import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { NotTaken, reasonOf } from '#alerts/deliver/post';
import { oneLine } from '#alerts/messages/content';
import type { Mail } from '#alerts/messages/mail';
import type { Target } from '#alerts/messages/target';
import type { OuterAddresses } from '#platform/config/outer-addresses';

type SmtpTarget = Extract<Target, { kind: 'smtp' }>;

const CONNECT_MS = 5_000;
const ANSWER_MS = 10_000;
const SHOWN = 200;

/** Loaded by the first mail: most processes send none. */
const mailer = (): typeof import('nodemailer') => createRequire(import.meta.url)('nodemailer');

/** Rejects with NotTaken unless the server takes it for all addresses. */
export async function sendMail(outer: OuterAddresses, target: SmtpTarget, mail: Mail): Promise<void> {
  const { host, port, security, user, password, from, to } = target;
  const address = await outer.addressOf(host).catch(error => {
    throw new NotTaken(reasonOf(host, error));
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
    });
    if (rejected.length > 0) throw new NotTaken(`${host} refuses some of the addresses`);
  } catch (error) {
    if (error instanceof NotTaken) throw error;
    const { response, message } = error as { response?: string; message: string };
    throw new NotTaken(`${host}: ${oneLine(response ?? message).slice(0, SHOWN)}`);
  } finally {
    transport.close();
  }
}
