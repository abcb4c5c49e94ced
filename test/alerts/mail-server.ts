import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export interface ReceivedMail {
  from: string;
  to: string[];
  text: string;
  user: string | undefined;
}

/** A mail server of another making, at an address of this host. Its one password is `right`. */
export class MailServer {
  readonly mails: ReceivedMail[] = [];

  private constructor(private readonly server: SMTPServer) {}

  static async start(options: SMTPServerOptions = {}): Promise<MailServer> {
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      logger: false,
      onAuth: ({ username, password }, _, done) =>
        password === 'right' ? done(null, { user: username ?? '' }) : done(new Error('wrong password')),
      onData: (stream, { envelope, user }, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', chunk => chunks.push(chunk));
        stream.on('end', () => {
          made.mails.push({
            from: envelope.mailFrom ? envelope.mailFrom.address : '',
            to: envelope.rcptTo.map(({ address }) => address),
            text: Buffer.concat(chunks).toString(),
            user: user as string | undefined,
          });
          done();
        });
      },
      ...options,
    });
    const made = new MailServer(server);
    // Clients that it refuses hang up on it.
    server.on('error', () => {});
    await new Promise<void>(done => server.listen(0, '127.0.0.1', () => done()));
    return made;
  }

  get port(): number {
    return (this.server.server.address() as AddressInfo).port;
  }

  close(): Promise<void> {
    return new Promise(done => this.server.close(() => done()));
  }
}
