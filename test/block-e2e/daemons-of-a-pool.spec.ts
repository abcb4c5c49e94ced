import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DaemonFolder } from '#backends/tgt/daemon-folder';
import { BlockJobs, hostOf, must } from '#test/block-crash/block-jobs';
import { hasTgtRbd } from '#test/exporter/rbd-images';
import { TestAppliance } from '#test/support/appliance';
import { keptPort } from '#test/support/free-port';
import { Initiator } from '#test/support/initiator';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;
/** Daemons that are as they should be are asked every 2.5 s, and pools audited twice a second. */
const ROUNDS_MS = 6_000;

describe.skipIf(!hasTgtRbd())(
  'a pool of Ceph with two sets of portals, each of a tgtd with room for one volume',
  () => {
    let appliance: TestAppliance;
    let jobs: BlockJobs;
    let second: string;
    const host = hostOf('node');
    const ids: string[] = [];

    beforeAll(async () => {
      const env = { TRIVET_BLOCK_AUDIT_MS: '500', TRIVET_LEASE_MS: '6000' };
      appliance = await TestAppliance.start({ backend: 'fake', block: 'rbd', env });
      jobs = new BlockJobs(appliance);
      second = `127.0.0.1:${await keptPort()}`;
      await has(second, 1);
      await must(() => jobs.host(host));
      for (const name of ['one', 'two', 'three']) ids.push((await must(() => jobs.create(name, MIB))).body.id);
    }, 60_000);
    afterAll(() => appliance?.close());

    /** From now on, as its worker sees it. */
    async function has(further: string, maxUnits: number): Promise<void> {
      await appliance.registerAgain({ TRIVET_RBD_FURTHER_PORTALS: further });
      await appliance.database.query(
        "UPDATE trivet.backend SET config = jsonb_set(config, '{exporter,maxUnits}', $1) WHERE kind = 'rbd'",
        [`${maxUnits}`],
      );
      await appliance.process('worker').stop('SIGKILL');
      await appliance.worker();
      const sets = further === '' ? 0 : 2;
      await until('the pool is looked at', async () => {
        const [row] = await appliance.database.query<{ sets: number }>(
          'SELECT jsonb_array_length(portal_sets) AS sets FROM trivet.pool',
        );
        return row?.sets === sets;
      });
    }

    interface Served {
      portal: string;
      target: string;
    }
    const publish = async (id: string, to = host): Promise<Served> => {
      const { body } = await must(() => jobs.publish(id, to));
      expect(body.discovery_ips).toHaveLength(1);
      return { portal: body.discovery_ips[0], target: body.target_names[0] };
    };
    const session = ({ portal, target }: Served, { iqns } = host) => new Initiator(iqns[0]!).login(portal, target, 1);
    const folder = async (nth: number) => {
      const [row] = await appliance.database.query<{ tenantId: string }>(
        'SELECT tenant_id AS "tenantId" FROM trivet.pool',
      );
      return DaemonFolder.of(appliance.tgtPath, { tenantId: row!.tenantId, pool: 'ceph', nth });
    };
    const pidOf = async (nth: number): Promise<number | undefined> => (await (await folder(nth)).read())?.pid;
    const portals = () => [appliance.blockFolders.portal, second];
    const ratio = async () =>
      Number(/^trivet_pool_published_ratio_max (\S+)$/m.exec(await appliance.process('worker').metrics())?.[1]);
    const served: Served[] = [];

    it('publishes two at once, one at each, and refuses a third one', async () => {
      const [one = '', two = '', three = ''] = ids;
      served.push(...(await Promise.all([publish(one), publish(two)])));
      expect(served.map(({ portal }) => portal).toSorted()).toEqual(portals().toSorted());
      for (const [nth, one] of served.entries()) {
        const disk = await session(one);
        await disk.write(0, Buffer.alloc(512, nth + 1));
        await disk.close();
        const other = served[1 - nth]!;
        await expect(session({ ...one, portal: other.portal })).rejects.toThrow();
      }
      expect(await ratio()).toBe(1);
      const refused = await jobs.publish(three, host);
      expect(refused.code).toBe('507');
      expect(refused.message).toMatch(/serves 1 volumes, and 1 at most \(maxUnits\)/);
    });

    it('keeps a volume where it is for a further host, and gives a place that is free to the next one', async () => {
      const [one = '', , three = ''] = ids;
      const further = hostOf('further');
      await must(() => jobs.host(further));
      expect(await publish(one, further)).toEqual(served[0]);
      for (const from of [host, further]) await must(() => jobs.unpublish(one, from));
      expect((await publish(three)).portal).toBe(served[0]!.portal);
      await must(() => jobs.unpublish(three, host));
      expect((await publish(one)).portal).toBe(served[0]!.portal);
    });

    it('starts one of them again that has died, with its volume, and leaves the other one alone', async () => {
      const [dead, alive] = [await pidOf(1), await pidOf(0)];
      process.kill(dead!, 'SIGKILL');
      const of = served.find(({ portal }) => portal === second)!;
      const disk = await until('its volume is served again', () => session(of).catch(() => undefined));
      expect([...new Set(await disk.read(0, 512))]).toEqual([served.indexOf(of) + 1]);
      await disk.close();
      expect(await pidOf(1)).not.toBe(dead);
      expect(await pidOf(0)).toBe(alive);
    });

    it('has nothing to say of it in an audit, and nothing to apply in rounds', async () => {
      const audits = async () => {
        const [row] = await appliance.database.query<{ at: Date | null }>('SELECT audited_at AS at FROM trivet.pool');
        return row!.at?.getTime() ?? 0;
      };
      const log = () => appliance.process('worker').log();
      // The daemon that died was audited while its target was applied.
      const [before, said] = [await audits(), log().length];
      await until('rounds and passes have ended', async () => (await audits()) > before + ROUNDS_MS);
      expect(log().slice(said)).not.toMatch(/targets are applied again|its target is missing|its target differs/);
      expect(await appliance.database.query('SELECT kind, subject FROM trivet.finding')).toEqual([]);
    });

    it('serves all at the first one when the other set is taken away, and ends the other daemon', async () => {
      const was = await pidOf(1);
      await has('', 2);
      for (const [nth, { target }] of served.entries()) {
        const here = { portal: appliance.blockFolders.portal, target };
        const disk = await until('it is served', () => session(here).catch(() => undefined), 30_000);
        expect([...new Set(await disk.read(0, 512))]).toEqual([nth + 1]);
        await disk.close();
        expect((await publish(ids[nth]!)).portal).toBe(here.portal);
      }
      expect(existsSync(`/proc/${was}`) && readFileSync(`/proc/${was}/cmdline`, 'utf8').includes('tgtd')).toBe(false);
    });

    it('leaves them there when it gets the set back, so that no two daemons have one volume', async () => {
      await has(second, 2);
      await until('the other one runs', () => pidOf(1));
      for (const [nth, { target }] of served.entries()) {
        expect((await publish(ids[nth]!)).portal).toBe(appliance.blockFolders.portal);
        await expect(session({ portal: second, target })).rejects.toThrow();
      }
      expect((await publish(ids[2]!)).portal).toBe(second);
      for (const id of ids) await must(() => jobs.unpublish(id, host));
      expect(await ratio()).toBe(0);
    });
  },
);
