/**
 * Stands for Google: Cloud Storage by JSON and XML, IAM and the Resource Manager, on one port of the loopback. Nobody of the tests
 * has met the real one: what is written here follows its public description.
 */
import { createVerify, generateKeyPairSync } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { GcsProject, Refusal } from '#test/fakes/gcs/gcs-project';
import { answerIam, answerResources, answerStorage } from '#test/fakes/gcs/json-door';
import { answerXml } from '#test/fakes/gcs/xml-door';

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
const MOST_SKEW_S = 600;

export class GcsServer {
  readonly project = new GcsProject('trivet-tests');
  /** The file that Google gives for Trivet's account. */
  readonly keyFile: string;
  endpoint = '';
  /** How far its clock is ahead, in seconds. */
  skew = 0;
  readonly #publicKey: string;
  readonly #email = 'trivet@trivet-tests.iam.gserviceaccount.com';
  #server: Server | undefined;

  private constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    });
    this.#publicKey = publicKey;
    this.keyFile = JSON.stringify({
      type: 'service_account',
      project_id: this.project.id,
      private_key_id: 'one',
      private_key: privateKey,
      client_email: this.#email,
    });
  }

  static async start(): Promise<GcsServer> {
    const server = new GcsServer();
    server.#server = createServer(async (message, response) => {
      const { status, text } = server.#answer(message, await buffer(message));
      response.writeHead(status, { 'content-length': Buffer.byteLength(text) }).end(text);
    });
    await new Promise<void>(resolve => server.#server!.listen(0, '127.0.0.1', resolve));
    server.endpoint = `http://127.0.0.1:${(server.#server.address() as AddressInfo).port}`;
    return server;
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise(resolve => this.#server?.close(resolve));
  }

  #answer(message: IncomingMessage, body: Buffer): { status: number; text: string | Buffer } {
    const url = new URL(message.url!, 'http://google');
    const path = message.url!.split('?')[0]!;
    const [, prefix] = /^\/(storage\/v1|v1)\//.exec(path) ?? [];
    if (prefix === undefined) {
      const isTrivet = this.#isTrivet(message);
      return answerXml(this.project, { method: message.method!, url, path, headers: message.headers, body }, isTrivet);
    }
    try {
      if (!this.#isTrivet(message)) throw new Refusal(401, 'authError', 'Invalid Credentials');
      const parts = path
        .slice(prefix.length + 2)
        .split('/')
        .map(decodeURIComponent);
      const request = {
        method: message.method!,
        parts,
        query: url.searchParams,
        body: body.length === 0 ? {} : JSON.parse(body.toString()),
      };
      const door =
        prefix === 'v1' ? (path.endsWith(':testIamPermissions') ? answerResources : answerIam) : answerStorage;
      const said = door(this.project, request);
      return said === undefined ? { status: 204, text: '' } : { status: 200, text: JSON.stringify(said) };
    } catch (error) {
      const {
        status,
        reason,
        message: text,
      } = error instanceof Refusal ? error : new Refusal(500, 'backendError', `${error}`);
      const words = prefix === 'v1' ? { status: reason } : { errors: [{ domain: 'global', reason, message: text }] };
      return { status, text: JSON.stringify({ error: { code: status, message: text, ...words } }) };
    }
  }

  /** A token that its holder signed itself (https://google.aip.dev/auth/4111). */
  #isTrivet({ headers }: IncomingMessage): boolean {
    const [, token = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? [];
    const [head = '', claims = '', signature = ''] = token.split('.');
    if (signature === '') return false;
    const verified = createVerify('RSA-SHA256')
      .update(`${head}.${claims}`)
      .verify(this.#publicKey, signature, 'base64url');
    const { iss, sub, scope, iat, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString());
    const now = Date.now() / 1_000 + this.skew;
    return verified && iss === this.#email && sub === iss && scope === SCOPE && iat < now + MOST_SKEW_S && exp > now;
  }
}
