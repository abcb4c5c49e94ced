import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { poolsSeen } from '#test/admin/resource-calls';
import { type Answer, type CbtClient, statusOf } from '#test/cbt/client';
import { BLOCKS, type Connector, ConnectorHouse } from '#test/clusters/connector-house';
import { type LargeDelta, largeDelta } from '#test/clusters/large-delta';
import { type History, makeHistory } from '#test/dashboard/dashboard-house';
import { parts, until } from '#test/support/parts';

const ALLOCATED = '/csi.v1.SnapshotMetadata/GetMetadataAllocated';
const DELTA = '/csi.v1.SnapshotMetadata/GetMetadataDelta';
const IDENTITY = ['GetPluginInfo', 'GetPluginCapabilities', 'Probe'].map(name => `/csi.v1.Identity/${name}`);
const MIB = 1024 * 1024;
/** Some 25 MB of messages, which no buffers on the way hold. */
const RANGES = 2_000_000;

/** Changed blocks through a connector, beside the same calls at the gateway's own socket. */
describe.skipIf(!parts().xfs)('the CSI socket of a connector', () => {
  let house: ConnectorHouse;
  let connector: Connector;
  let history: History;
  let direct: CbtClient;
  let through: CbtClient;

  beforeAll(async () => {
    house = await ConnectorHouse.open({ block: 'fake-xfs', gateways: 1 });
    await poolsSeen(house.house, house.acme);
    history = await makeHistory(house.house);
    connector = await house.connector();
    await connector.process.ready();
    direct = house.csi(house.direct(BLOCKS, 'csi'));
    through = house.csi(connector.sockets.csi);
  }, 120_000);
  afterAll(() => house?.close());

  const streamsOpen = async (): Promise<number> => {
    const text = await house.gateways[0]!.metrics();
    return Number(/^trivet_cbt_streams_open\{face="csi"\} (\d+)$/m.exec(text)?.[1] ?? 0);
  };
  const both = async (path: string, request: Parameters<CbtClient['call']>[1]): Promise<Answer> => {
    const [here, there] = await Promise.all([direct.call(path, request), through.call(path, request)]);
    expect(there).toEqual(here);
    return there;
  };

  it('answers as the socket of the gateway does, data and errors alike', async () => {
    const [monday, tuesday, wednesday] = history.snapshots;
    for (const path of IDENTITY) expect(await through.unary(path)).toEqual(await direct.unary(path));
    expect((await both(ALLOCATED, { 1: wednesday! })).messages[0]!.ranges.length).toBeGreaterThan(5);
    expect((await both(DELTA, { 1: monday!, 2: wednesday!, 4: 3 })).messages.length).toBeGreaterThan(2);
    expect((await both(DELTA, { 1: monday!, 2: tuesday! })).code).toBe('OK');
    expect((await both(ALLOCATED, { 1: 'none' })).code).toBe('NOT_FOUND');
    expect((await both(ALLOCATED, {})).code).toBe('INVALID_ARGUMENT');
    expect((await both(ALLOCATED, { 1: wednesday!, 2: 65 * MIB })).code).toBe('OUT_OF_RANGE');
    expect((await both('/csi.v1.Controller/CreateVolume', {})).code).toBe('UNIMPLEMENTED');
    expect((await both(ALLOCATED, Buffer.alloc(2 * MIB))).code).toBe('RESOURCE_EXHAUSTED');
  });

  describe('with a stream that nobody reads', () => {
    let large: LargeDelta;
    const request = () => ({ 1: large.base, 2: large.target });
    beforeAll(async () => {
      large = await largeDelta(house.house, RANGES);
    });

    it('passes the deadline on', async () => {
      const stream = through.stream(DELTA, request(), { deadline: Date.now() + 1_000 });
      const code = statusOf(stream);
      await once(stream, 'readable');
      await until('it is under way', async () => (await streamsOpen()) === 1);
      expect(await code).toBe(4);
      await until('the gateway has ended it', async () => (await streamsOpen()) === 0);
    });

    it('passes a cancellation on', async () => {
      const stream = through.stream(DELTA, request());
      const code = statusOf(stream);
      await once(stream, 'readable');
      await until('it is under way', async () => (await streamsOpen()) === 1);
      stream.cancel();
      expect(await code).toBe(1);
      await until('the gateway has ended it', async () => (await streamsOpen()) === 0);
    });

    it('ends with UNAVAILABLE within 5 s when the cluster is revoked', async () => {
      const stream = through.stream(DELTA, request());
      const code = statusOf(stream);
      await once(stream, 'readable');
      const path = `/tenants/acme/clusters/${connector.cluster}/revoke`;
      const before = performance.now();
      expect((await house.house.call(house.acme.admin, 'POST', path, { body: {} })).status).toBe(200);
      stream.resume();
      expect(await code).toBe(14);
      expect(performance.now() - before).toBeLessThan(5_000);
    });
  });
});
