import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROUTES } from '#admin/contract/index';
import type { RouteContract } from '#admin/contract/route';
import { PACKAGE_ROOT } from '#platform/package-root';
import { TABLE } from '../commands/table.js';
import { calledByPage, calledIn } from './page-calls.js';
import { commandsOf, WITHOUT_COMMAND } from './route-commands.js';
import { verbsMarkdown } from './verbs-markdown.js';

const names = TABLE.commands.map(({ name }) => name);
const each = ROUTES.map(route => [route.id, route] as const);

it('docs/verbs.md is as the contract and the commands are: ./trivet openapi writes it', () => {
  expect(readFileSync(join(PACKAGE_ROOT, 'docs', 'verbs.md'), 'utf8')).toBe(verbsMarkdown(TABLE));
});

describe('a route', () => {
  it.each(each)('%s has a command, or a reason to have none', (id, route) => {
    if (id in WITHOUT_COMMAND) return;
    const commands = commandsOf(route);
    expect(commands.length).toBeGreaterThan(0);
    expect(commands.filter(name => !names.includes(name))).toEqual([]);
  });

  it.each(Object.entries(WITHOUT_COMMAND))('%s, which has none, is there, and says why', (id, reason) => {
    expect(ROUTES.map(route => route.id)).toContain(id);
    expect(reason).toMatch(/^[a-z].{10,}/);
  });

  it.each(each)('%s is called by the sources of the command line that claims it', async (id, route) => {
    if (id in WITHOUT_COMMAND) return;
    const { group, member } = (await placesOf()).get(route)!;
    // By its name, or as one of its group, which a helper takes as a whole.
    const use = new RegExp(String.raw`\b${group}(\.${member}\b|[,;)[])`);
    expect(sources.some(text => use.test(text.replaceAll(/^import [^;]*;$/gm, '')))).toBe(true);
  });
});

const folder = join(PACKAGE_ROOT, 'apps', 'cli', 'src');
const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter(file => file.endsWith('.ts') && !file.endsWith('.spec.ts'))
  .map(file => readFileSync(join(folder, file), 'utf8'));

/** `volumeRoutes.get` of each route. */
async function placesOf(): Promise<Map<RouteContract, { group: string; member: string }>> {
  const contracts = join(PACKAGE_ROOT, 'libs', 'admin', 'src', 'contract');
  const files = readdirSync(contracts).filter(file => !/^index|\.spec\./.test(file));
  const modules = await Promise.all(files.map(file => import(join(contracts, file)) as Promise<object>));
  const groups = modules.flatMap(module => Object.entries(module)).filter(([name]) => name.endsWith('Routes'));
  return new Map(
    groups.flatMap(([group, routes]) =>
      Object.entries(routes as Record<string, RouteContract>).map(([member, route]) => [route, { group, member }]),
    ),
  );
}

describe('what the page calls', () => {
  it('is read out of its sources', () => {
    const called = calledByPage(ROUTES);
    for (const id of ['login', 'listVolumes', 'testBackend', 'retryOperation', 'revokeCluster', 'exportAudit'])
      expect(called).toContain(id);
    expect(called).not.toContain('getOpenApi');
  });

  it.each([
    ["call('GET', '/tenants', {})", ['listTenants']],
    [`const PATH = '/tenants/{tenant}/backends/{backend}';\ncall('POST', \`\${PATH}/test\`, {})`, ['testBackend']],
    ["callFresh(\n  'DELETE',\n  '/tenants/{tenant}/users/{user}', seen", ['getUser', 'deleteUser']],
    [`const verbs = { retry: 1 };\ncall('POST', \`/operations/{operation}/\${verb}\`)`, ['retryOperation']],
    ['<ListPage path="/tenants/{tenant}/tokens" />', ['listTokens']],
    ["useRead('/nothing', {})", []],
  ])('%j', (text, ids) => expect(calledIn(text, ROUTES)).toEqual(ids));
});
