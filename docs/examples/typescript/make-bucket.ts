// Lists the volumes of a tenant, makes a bucket, and waits for the operation that does it:
//   node docs/examples/typescript/make-bucket.ts http://127.0.0.1:8740 TOKEN-FILE TENANT BUCKET
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import createClient from 'openapi-fetch';
import type { components, paths } from './trivet-api.d.ts';

type Operation = components['schemas']['OperationDetail'];

const [url, tokenFile, tenant, name] = process.argv.slice(2);
if (url === undefined || tokenFile === undefined || tenant === undefined || name === undefined) {
  console.error('usage: make-bucket.ts URL TOKEN-FILE TENANT BUCKET');
  process.exit(2);
}

const trivet = createClient<paths>({
  baseUrl: `${url}/api/v1`,
  headers: { authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` },
});

/** What was refused says why, and what to do, in a form of its own (RFC 9457). */
function refused(what: string, { detail, code, retryable }: components['schemas']['Problem']): Error {
  return new Error(`${what}: ${detail} (${code}${retryable ? '; try again later' : ''})`);
}

/** All of them: a page names the next one. */
async function* volumesOf(tenant: string) {
  let cursor: string | undefined;
  do {
    const { data, error } = await trivet.GET('/tenants/{tenant}/volumes', {
      params: { path: { tenant }, query: { limit: 200, cursor } },
    });
    if (error) throw refused('the volumes', error);
    yield* data.items;
    cursor = data.next ?? undefined;
  } while (cursor !== undefined);
}

async function ended(operation: string): Promise<Operation> {
  for (;;) {
    const { data, error } = await trivet.GET('/operations/{operation}', { params: { path: { operation } } });
    if (error) throw refused(`operation ${operation}`, error);
    if (data.finishedAt !== null || data.state === 'needs_attention') return data;
    await delay(500);
  }
}

for await (const { name, size, state } of volumesOf(tenant)) console.log(`volume ${name}: ${size} bytes, ${state}`);

const { data, error, response } = await trivet.POST('/tenants/{tenant}/buckets/create', {
  // A repeat with the same key, after a connection that broke, makes nothing twice.
  params: { path: { tenant }, header: { 'Idempotency-Key': randomUUID() } },
  body: { name },
});
if (error) throw refused(`bucket ${name}`, error);
// 202: it goes on, and Location says where.
const operation = response.status === 202 ? response.headers.get('location')?.split('/').at(-1) : undefined;
if (operation === undefined) console.log(`bucket ${data.name}: ${data.state}`);
else {
  const { state, error: failed, advice } = await ended(operation);
  console.log(`bucket ${name}: operation ${operation} ${state}`);
  if (state !== 'succeeded') throw new Error([failed?.message, advice].filter(Boolean).join('\n'));
}
