import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { demandLeases } from '#backends/lease-demand';
import { bootClock } from '#backends/linux/boot-clock';
import { addAddress, isHostAddress, type MovingAddress, removeAddress } from '#backends/linux/moving-address';
import { DaemonFolder } from '#backends/tgt/daemon-folder';
import { splitPortal } from '#backends/tgt/portals';
import { TgtLeases } from '#backends/tgt/tgt-leases';
import { unleased } from '#platform/lease-signal';
import { freePort } from '#test/support/free-port';

const LONG_MS = 3_600_000;
const soon = () => unleased(AbortSignal.timeout(30_000));
const ADDRESSES = ['192.0.2.201', '192.0.2.202', '192.0.2.203'];
const on = (address: string): MovingAddress => ({ address, device: 'lo', prefixLength: 32 });

/** Sets of portals that a registration has no more, at a host that had them. */
describe('a pool with sets of portals', () => {
  let folder: string;
  let sets: string[][];
  let isMoving: boolean;
  let leases: TgtLeases;
  const pool = { tenantId: randomUUID(), pool: 'pool' };
  const addressesOf = (nth: number) =>
    readFileSync(join(DaemonFolder.of(folder, { ...pool, nth }).path, 'addresses'), 'utf8');
  const hold = () => leases.hold(pool, bootClock() + LONG_MS);
  beforeEach(() => {
    demandLeases();
    folder = mkdtempSync(join(tmpdir(), 'trivet-former-'));
    const moving = (_: string, nth: number) =>
      isMoving ? (sets[nth] ?? []).map(portal => on(splitPortal(portal).address)) : [];
    leases = new TgtLeases(folder, { sets: () => sets, moving });
  });
  afterEach(async () => {
    await leases.drop(pool, { orderly: false }, soon());
    for (const address of ADDRESSES) await removeAddress(on(address));
    rmSync(folder, { recursive: true, force: true });
  });

  describe.runIf(process.getuid?.() === 0)('whose addresses move', () => {
    const here = () => ADDRESSES.map(address => isHostAddress(address));
    const serve = async () => {
      isMoving = true;
      sets = ADDRESSES.map(address => [`${address}:3260`]);
      await hold();
      for (const address of ADDRESSES) await addAddress(on(address));
    };

    it('takes the addresses of a set away that is gone, and leaves those that another set has got', async () => {
      await serve();
      const [one = '', two = ''] = sets.flat();
      sets = [[one, two]];
      await hold();
      expect(here()).toEqual([true, true, false]);
      // What guards those daemons takes them away again and again.
      expect([addressesOf(1), addressesOf(2)]).toEqual(['', '']);
    });

    it('takes an address away that a set has no more', async () => {
      await serve();
      const [, two = '', three = ''] = sets.flat();
      sets = [[two], [three]];
      await hold();
      expect(here()).toEqual([false, true, true]);
    });

    it('takes all of them away when another host has the pool', async () => {
      await serve();
      sets = [sets[0]!];
      await leases.drop(pool, { orderly: false }, soon());
      expect(here()).toEqual([false, false, false]);
    });
  });

  describe('that are addresses of hosts', () => {
    const guide = { servedAt: async () => [], targetsOf: async () => [] };
    const isOpen = async (portal: string): Promise<boolean> => {
      const { address: host, port } = splitPortal(portal);
      const socket = connect({ host, port });
      const isThere = await Promise.race([
        once(socket, 'connect').then(() => true),
        once(socket, 'close').then(() => false),
      ]).catch(() => false);
      socket.destroy();
      return isThere;
    };

    it('sends nobody on any more from portals that are gone', async () => {
      isMoving = false;
      sets = [[`127.0.0.1:${await freePort()}`], [`127.0.0.1:${await freePort()}`]];
      const [one = '', two = ''] = sets.flat();
      await leases.sendOn(pool, guide);
      expect([await isOpen(one), await isOpen(two)]).toEqual([true, true]);
      sets = [[one]];
      await leases.sendOn(pool, guide);
      expect([await isOpen(one), await isOpen(two)]).toEqual([true, false]);
      sets = [[two]];
      await leases.sendOn(pool, undefined);
      expect([await isOpen(one), await isOpen(two)]).toEqual([false, false]);
    });
  });
});
