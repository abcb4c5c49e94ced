import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BlockBackend } from '#backends/block-backend';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import type { ReflinkConfig } from '#backends/reflink/reflink-config';
import { reflinkKind } from '#backends/reflink/reflink-kind';
import { unleased } from '#platform/lease-signal';
import { uuidv7 } from '#platform/uuid';

const signal = () => unleased(AbortSignal.timeout(20_000));
const applianceId = randomUUID();
const ownerId = uuidv7();
const { registration } = reflinkKind;

describe('a pool of files that tenants share', () => {
  let folder: string;
  let root: string;
  let config: ReflinkConfig;
  const open = (of: ReflinkConfig, tenantId: string) => new ReflinkBackend(of.pools, { applianceId, tenantId });
  const acme = { id: uuidv7(), name: 'acme' };
  const beta = { id: uuidv7(), name: 'beta' };
  const share = (tenant: { id: string; name: string }, others: ReflinkConfig[] = [], before?: ReflinkConfig) =>
    registration.share(config, { applianceId, ownerId, tenant, others, before }) as ReflinkConfig;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'shared-pool-'));
    root = join(folder, 'pool');
    mkdirSync(root);
    config = reflinkKind.parseConfig({
      pools: [{ name: 'main', path: root, portals: ['127.0.0.1:3260', '[::1]:3260'] }],
      exporter: { kind: 'none' },
    });
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  async function make(backend: BlockBackend): Promise<string> {
    const id = uuidv7();
    const stage = { pool: 'main', imageId: id, operationId: uuidv7(), fence: '1' };
    await backend.stage(stage, { kind: 'empty', sizeBytes: 4096n, thick: false }, signal());
    await backend.commit(stage, { pool: 'main', kind: 'volume', id, folder: '' }, { readOnly: false }, signal());
    return id;
  }
  async function images(backend: BlockBackend): Promise<string[]> {
    const found: string[] = [];
    for await (const { id } of backend.listImages('main', signal())) found.push(id);
    return found;
  }
  const stateOf = async (backend: BlockBackend) => (await backend.inspectPools(signal()))[0]!;

  it('gives each a folder and portals of its own, the same on every repeat', () => {
    const first = share(acme);
    const second = share(beta, [first]);
    expect(first.pools[0]).toMatchObject({
      path: join(root, 'tenants', acme.id),
      portals: ['127.0.0.1:3261', '[::1]:3261'],
      within: { path: root, ownerId },
    });
    expect(second.pools[0]).toMatchObject({
      path: join(root, 'tenants', beta.id),
      portals: ['127.0.0.1:3262', '[::1]:3262'],
    });
    // The first share is gone meanwhile: the second one's hosts must find it where it was.
    expect(share(beta, [], second)).toEqual(second);
    expect(reflinkKind.parseConfig(JSON.parse(JSON.stringify(second)))).toEqual(second);
    config = { ...config, pools: config.pools.map(pool => ({ ...pool, portals: ['127.0.0.2:3260'] })) };
    expect(share(beta, [first], second).pools[0]!.portals).toEqual(['127.0.0.2:3261']);
    config = second;
    expect(() => share(acme)).toThrow(/is a share itself/);
  });

  it('gives each the next of the portals that are named for shares, so that nodes find all at port 3260', () => {
    const named = (sharePortals: string[]) => {
      const portals = ['192.0.2.1:3260', '198.51.100.1:3260'];
      config = reflinkKind.parseConfig({
        pools: [{ name: 'main', path: root, portals, sharePortals }],
        exporter: { kind: 'none' },
      });
    };
    const before = share(beta);
    named(['192.0.2.2:3260', '198.51.100.2:3260', '192.0.2.3:3260', '198.51.100.3:3260']);
    const first = share(acme);
    expect(first.pools[0]).toMatchObject({ portals: ['192.0.2.2:3260', '198.51.100.2:3260'] });
    expect(first.pools[0]).not.toHaveProperty('sharePortals');
    // Those of one that was there before they were named are moved to where nodes come.
    const second = share(beta, [first], before);
    expect(second.pools[0]).toMatchObject({ portals: ['192.0.2.3:3260', '198.51.100.3:3260'] });
    expect(share(beta, [], second)).toEqual(second);
    expect(() => share(acme, [first, second])).toThrow(/pool main has no portal left for another share/);
    // As a form sends it that names none.
    named([]);
    expect(share(acme).pools[0]).toMatchObject({ portals: ['192.0.2.1:3261', '198.51.100.1:3261'] });
  });

  it('keeps their images apart, from each other and from whose pool it is', async () => {
    const owner = open(config, ownerId);
    await owner.preparePool('main', signal());
    const [one, other] = [open(share(acme), acme.id), open(share(beta), beta.id)];
    for (const backend of [one, other]) {
      expect(await stateOf(backend)).toMatchObject({ state: 'down' });
      expect(await backend.preparePool('main', signal())).toMatchObject({ state: 'up' });
    }
    const [ofAcme, ofBeta, ofOwner] = [await make(one), await make(other), await make(owner)];
    expect(await images(one)).toEqual([ofAcme]);
    expect(await images(other)).toEqual([ofBeta]);
    expect(await images(owner)).toEqual([ofOwner]);
    const image = { pool: 'main', kind: 'volume' as const, id: ofBeta, folder: '' };
    expect(await one.inspectImage(image, signal())).toEqual({ state: 'absent' });
    // A folder of another tenant is no pool of this one, whatever its registration says.
    const stranger = open(share(beta), acme.id);
    expect(await stateOf(stranger)).toMatchObject({ state: 'down', reason: expect.stringContaining('another') });
    const uuids = await Promise.all([owner, one, other].map(async backend => (await stateOf(backend)).uuid));
    expect(new Set(uuids).size).toBe(3);
  });

  it('makes nothing where the pool should be mounted and is not', async () => {
    const owner = open(config, ownerId);
    const backend = open(share(acme), acme.id);
    await expect(backend.preparePool('main', signal())).rejects.toThrow(/is empty: mount it/);
    expect(readdirSync(root)).toEqual([]);
    await owner.preparePool('main', signal());
    await backend.preparePool('main', signal());
    const id = await make(backend);
    renameSync(root, `${root}-unmounted`);
    mkdirSync(root);
    expect(await stateOf(backend)).toMatchObject({ state: 'down' });
    await expect(backend.preparePool('main', signal())).rejects.toThrow(/is empty: mount it/);
    await expect(make(backend)).rejects.toMatchObject({ kind: 'unavailable' });
    expect(existsSync(join(root, 'tenants'))).toBe(false);
    rmSync(root, { recursive: true });
    renameSync(`${root}-unmounted`, root);
    expect(await images(backend)).toEqual([id]);
  });

  it('is nobody’s whose marker is another tenant’s', async () => {
    await open(config, uuidv7()).preparePool('main', signal());
    await expect(open(share(acme), acme.id).preparePool('main', signal())).rejects.toThrow(
      /another appliance or tenant/,
    );
    expect(existsSync(join(root, 'tenants'))).toBe(false);
  });
});
