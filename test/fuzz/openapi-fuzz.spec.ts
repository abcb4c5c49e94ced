import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUTES } from '#admin/contract/index';
import { configureLogging } from '#platform/logging/log';
import type { AdminHouse } from '#test/admin/admin-house';
import { ExampleThings } from '#test/admin/example-things';
import { fill, type Things } from '#test/admin/tenant-things';
import { type FuzzRequest, requestOf } from '#test/fuzz/fuzz-request';
import { type Operation, readDocument } from '#test/fuzz/openapi-document';
import { SchemaArbitrary } from '#test/fuzz/schema-arbitrary';
import { Judge } from '#test/fuzz/verdict';
import { FuzzWire, targetOf } from '#test/fuzz/wire';

/**
 * Requests made from docs/openapi.json: right ones, and right ones with something wrong in them, by callers of all sorts.
 * No answer is a defect (5xx), undocumented, or of another form than the document says; no refusal is anything but
 * problem+json that can be quoted; and nothing that the document forbids is accepted.
 */
const LONG = process.env.TRIVET_TEST_LONG !== undefined;
const RUNS = LONG ? 1_000 : 40;
const SEED = Number(process.env.TRIVET_FUZZ_SEED ?? (LONG ? Date.now() % 2 ** 31 : 20_260_524));

/** A password costs what it should. */
const FEWER: Readonly<Record<string, number>> = {
  login: 4,
  changePassword: 8,
  beginTotp: 8,
  removeTotp: 8,
  renewRecoveryCodes: 8,
  beginPasskey: 8,
  removePasskey: 8,
};
/** Those whose success takes something away from what the others need come last. */
const LAST = ['changeUser', 'deleteUser', 'revokeToken', 'changeTenant', 'deleteTenant'];
const ORDER = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const rank = ({ id, method }: Operation): number => LAST.indexOf(id) * 10 + ORDER.indexOf(method);

/** What is made for the requests to name. */
const MADE =
  'user token login passkey backend sharedBackend objectBackend foreignBucket endpoint bucket access volume binnedVolume snapshot host publication template session operation storageHost poolBackend cluster alert receiver silence view'.split(
    ' ',
  );
const CLASSES = ['fast', 'copy', 'destroy', 'index'];

const document = readDocument();
const operations = [...document.operations].sort((a, b) => rank(a) - rank(b));

let house: AdminHouse;
let wire: FuzzWire;
let judge: Judge;
let schemas: SchemaArbitrary;
let firsts: Things = {};
const tokens: Record<string, string | undefined> = {};
const callers = [
  { name: 'root', weight: 10 },
  { name: 'admin', weight: 5 },
  { name: 'operator', weight: 3 },
  { name: 'viewer', weight: 2 },
  { name: 'stranger', weight: 1 },
  { name: 'wrong', weight: 1 },
  { name: 'nobody', weight: 1 },
];
/** Of this process, which makes the requests and answers them; PostgreSQL works besides. */
const spent = { sent: 0, from: performance.now(), cpu: process.cpuUsage() };
/** Operations that somebody was answered a success by. */
const reached = new Set<string>();

beforeAll(async () => {
  configureLogging({ level: 'error' });
  const things = await ExampleThings.create();
  house = things.house;
  const { app, root, acme, beta } = house;
  await app.listen(0, '127.0.0.1');
  wire = new FuzzWire((app.getHttpServer().address() as { port: number }).port);
  Object.assign(tokens, {
    root: root.admin.token,
    admin: acme.admin.token,
    operator: acme.operator.token,
    viewer: acme.viewer.token,
    stranger: beta.admin.token,
    wrong: `trivet_${'A'.repeat(43)}`,
  });
  judge = new Judge(document, [...Object.values(tokens).filter(token => token !== undefined), acme.admin.password]);
  const named = await madeBy(things);
  const { username, password } = house.acme.admin;
  firsts = Object.fromEntries(
    Object.entries({
      ...named,
      username: [username],
      password: [password],
      code: ['000000'],
      answer: ['code=guess&state=guess'],
    }).map(([name, [first]]) => [name, first!]),
  );
  const words = [...Object.values(named).flat(), 'appliance', 'beta', 'default', 'local', 'no-such'];
  schemas = new SchemaArbitrary(document.schemas, words, named);
}, 60_000);
afterAll(async () => {
  const { user, system } = process.cpuUsage(spent.cpu);
  const seconds = Math.round((performance.now() - spent.from) / 1_000);
  process.stdout.write(
    `fuzz: ${spent.sent} requests, seed ${SEED}, in ${seconds} s, ${Math.round((user + system) / 1e6)} s of CPU\n`,
  );
  wire?.close();
  await house?.close();
});

/** Of each sort several: some will be deleted. */
async function madeBy(things: ExampleThings): Promise<Record<string, string[]>> {
  const routeOf = (id: string) => ROUTES.find(route => route.id === id)!;
  const made: Record<string, string[]> = {
    tenant: [...Array<string>(9).fill('acme'), 'beta'],
    confirm: ['acme'],
    movedPool: ['moved'],
    class: [...CLASSES],
  };
  for (const name of MADE) {
    made[name] = [];
    for (let n = 0; n < 4; n++)
      made[name].push(await things.make(name, routeOf(n === 0 ? 'getTenant' : 'deleteBackend')));
  }
  for (const id of ['retryOperation', 'cancelOperation', 'resolveOperation', 'resolveOperation', 'releaseOperation'])
    made.operation!.push(await things.make('operation', { id, method: 'POST' }));
  const { volume = [], binnedVolume = [], snapshot = [], sharedBackend = [] } = made;
  return { ...made, volume: [...volume, ...binnedVolume], base: snapshot, share: sharedBackend };
}

/** Of the examples, about the things that were made. */
function bodiesOf(id: string): unknown[] {
  const { examples = [] } = ROUTES.find(route => route.id === id) ?? {};
  return examples.flatMap(({ body }) => (body === undefined ? [] : [fill(body, firsts)]));
}

const show = (request: FuzzRequest): string =>
  `${request.caller}: ${request.operation.method} ${targetOf(request)} ${JSON.stringify(request.headers)} ${request.payload ?? ''}`.slice(
    0,
    3_000,
  );

describe(`${RUNS} requests of each operation, seed ${SEED}`, () => {
  it.each(operations.map(operation => [operation.id, operation] as const))(
    '%s',
    async (id, operation) => {
      const property = fc.asyncProperty(requestOf(operation, schemas, callers, bodiesOf(id)), async request => {
        spent.sent++;
        const answer = await wire.send(request, tokens[request.caller]);
        if (answer.status < 300) reached.add(id);
        const found = judge.findings(request, answer);
        if (answer.status < 300 && ['wrong', 'nobody'].includes(request.caller) && id !== 'login' && !OPEN.has(id))
          found.push('nobody was let in');
        if (found.length > 0)
          throw new Error(`${found.join('; ')}\n${show(request)}\n${answer.status} ${answer.text.slice(0, 1_000)}`);
      });
      await fc.assert(property, {
        numRuns: Math.ceil(RUNS / (FEWER[id] ?? 1)),
        seed: SEED + operations.indexOf(operation),
        endOnFailure: true,
      });
    },
    Math.max(60_000, RUNS * 200),
  );

  it('has reached most operations, so that they mean something', () => {
    const reachable = operations.map(({ id }) => id).filter(id => !BY_PROOF.has(id));
    const untouched = reachable.filter(id => !reached.has(id));
    // Some take what only chance, or the moment, brings together.
    expect(untouched.length, untouched.join(', ')).toBeLessThan(reachable.length / 8);
  });
});

/** They take a code of this moment, or a signature, which no text that is made up is. */
const BY_PROOF = new Set([
  'confirmTotp',
  'renewRecoveryCodes',
  'removeTotp',
  'loginByPasskey',
  'addPasskey',
  'removePasskey',
]);

/** Operations of the document that ask nobody who he is. */
const OPEN = new Set(['getOpenApi', 'getProvider', 'getPasskeyLogin', 'beginPasskeyLogin']);
