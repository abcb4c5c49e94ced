import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ScriptedRequest {
  /** The action of IAM and STS; of S3 the method and what of the bucket, as `GET tagging`. */
  what: string;
  /** Of IAM and STS. */
  form: URLSearchParams;
  /** Whose signature it carries. */
  accessKeyId: string;
}

/** A code of an error with its status, or what is in the answer. Undefined: none comes. */
export type ScriptedAnswer = { status: number; code: string } | { body: string } | undefined;

/** A store on loopback that says what a test tells it to, and judges nothing. */
export class ScriptedStore {
  readonly requests: ScriptedRequest[] = [];
  #server: Server | undefined;

  constructor(private readonly answer: (request: ScriptedRequest) => ScriptedAnswer) {}

  get asked(): string[] {
    return this.requests.map(({ what }) => what);
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server!.address() as AddressInfo).port}`;
  }

  async start(): Promise<this> {
    this.#server = createServer(async (request, response) => {
      let text = '';
      for await (const chunk of request) text += String(chunk);
      const { searchParams } = new URL(request.url!, 'http://store');
      const form = new URLSearchParams(text);
      const action = form.get('Action');
      const [sub = ''] = [...searchParams.keys()].filter(key => key !== 'x-id');
      const [, accessKeyId = ''] = /Credential=([^/]+)/.exec(request.headers.authorization ?? '') ?? [];
      const asked = { what: action ?? `${request.method} ${sub}`.trim(), form, accessKeyId };
      this.requests.push(asked);
      const answer = this.answer(asked);
      if (!answer) return;
      if ('body' in answer) {
        const body = action
          ? `<${action}Response><${action}Result>${answer.body}</${action}Result></${action}Response>`
          : answer.body;
        response.writeHead(200, { 'content-type': 'text/xml' }).end(body);
        return;
      }
      const error = `<Error><Code>${answer.code}</Code><Message>told to</Message></Error>`;
      response
        .writeHead(answer.status, { 'content-type': 'text/xml' })
        .end(action ? `<ErrorResponse>${error}</ErrorResponse>` : error);
    });
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise(resolve => this.#server?.close(resolve));
  }
}
