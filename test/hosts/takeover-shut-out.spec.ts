import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasTgtRbd } from '#test/exporter/rbd-images';
import { ClusterHosts, type LogWriter } from '#test/hosts/cluster-hosts';
import { until } from '#test/support/parts';

describe.runIf(hasTgtRbd())('a storage host that serves a pool, and finds itself shut out of the cluster', () => {
  let house: ClusterHosts;
  let writer: LogWriter;
  beforeAll(async () => {
    house = await ClusterHosts.start(['a', 'b']);
    writer = await house.write();
  }, 120_000);
  afterAll(() => house?.close());

  const daemonsOf = (name: string) => house.node(name).host.pidsOf('tgtd');
  async function isShutOut(by: 'us' | 'others') {
    const { host: name, fence } = (await house.lease())!;
    for (const other of house.nodes.keys()) if (other !== name) await house.standsBy(other);
    const served = daemonsOf(name);
    expect(served).toHaveLength(1);
    await house.shutOut(name, by);
    await until('its daemon is ended', () => !daemonsOf(name).includes(served[0]!));
    return { name, fence };
  }

  it('by this appliance, ends its daemon and lets itself in when nothing of it can come any more', async () => {
    const { name } = await isShutOut('us');
    await until('it is let in', async () => !(await house.isRefused(name)));
    expect(await house.fences()).toEqual([]);
    await writer.acknowledges();
  }, 120_000);

  it('by somebody else, ends its daemon, and another one serves the pool', async () => {
    const { name, fence } = await isShutOut('others');
    await house.isTakenFrom(name, fence);
    expect(await house.lastTakeover()).toMatchObject({ from: name, why: 'cluster' });
    await writer.acknowledges();
    // Who took it over has shut it out, too, so that it may let itself in.
    await house.standsBy(name);
    expect(daemonsOf(name)).toEqual([]);
  }, 120_000);

  it('by somebody else while it serves nothing, says so, stays out and takes nothing over', async () => {
    const { host } = (await house.lease())!;
    const name = [...house.nodes.keys()].find(one => one !== host)!;
    const before = house.logOf(name).length;
    await house.shutOut(name, 'others');
    await until('it says so', () => /and this appliance has not put it there/.test(house.logOf(name).slice(before)));
    await house.takesNothing(name);
    expect(await house.isRefused(name)).toBe(true);
    await house.letIn(name);
    await house.standsBy(name);
  }, 120_000);

  it('has lost nothing of what was acknowledged', async () => {
    const found = await writer.finish();
    expect(found.slots).toEqual(found.expected);
  });
});
