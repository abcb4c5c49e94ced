import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ExporterWorld, failsWith, host, MIB } from '#backends/conformance/exporter-world';
import { DaemonFolder } from '#backends/tgt/daemon-folder';
import { hasTgtRbd, openRbdTgtHarness, type RbdTgtHarness } from '#test/exporter/rbd-images';
import { hasLibiscsi, type TgtSession } from '#test/exporter/tgt-harness';
import { QemuInitiator } from '#test/support/initiator';

const MAX_UNITS = 2;

describe.skipIf(!hasTgtRbd())('units of tgtd on images of Ceph', () => {
  const world = new ExporterWorld(() => openRbdTgtHarness(MAX_UNITS));
  const harness = () => world.harness as RbdTgtHarness;
  const folder = () => DaemonFolder.of(harness().folder, world.daemon).path;

  it('get their key by a file that nobody else reads, and by nothing else', async () => {
    const spec = await world.newSpec([host()]);
    await world.apply(spec);
    const files = readdirSync(folder(), { recursive: true, encoding: 'utf8' }).map(name => join(folder(), name));
    const having = files.filter(file => statSync(file).isFile() && readFileSync(file, 'utf8').includes(harness().key));
    expect(having).toEqual([join(folder(), 'keyring')]);
    expect(statSync(join(folder(), 'keyring')).mode & 0o777).toBe(0o600);
    const pid = await harness().pidOf(world.daemon);
    for (const file of ['cmdline', 'environ'])
      expect(readFileSync(`/proc/${pid}/${file}`, 'utf8')).not.toContain(harness().key);
    await world.remove(spec, true);
  });

  it('offer no discards, which bs_rbd carries out and answers with an error', async () => {
    const initiator = host();
    const spec = await world.newSpec([initiator]);
    await world.apply(spec);
    const session = (await world.login(spec, initiator)) as TgtSession;
    await session.write(8 * MIB, Buffer.alloc(MIB, 7));
    // ILLEGAL REQUEST: hosts do not ask again. It would be 4, a broken disk.
    await expect(session.discard(8 * MIB, 4 * MIB)).rejects.toMatchObject({ senseKey: 5 });
    expect(await harness().objects(harness().pathOf(spec.image))).toBe(1);
    await session.close();
    await world.remove(spec, true);
  });

  it('are bounded: one more than that is refused, and leaves no target', async () => {
    const specs = [await world.newSpec([host()]), await world.newSpec([host()]), await world.newSpec([host()])];
    const applied = await Promise.allSettled(specs.map(spec => world.apply(spec)));
    expect(applied.filter(({ status }) => status === 'fulfilled')).toHaveLength(MAX_UNITS);
    const refused = specs[applied.findIndex(({ status }) => status === 'rejected')]!;
    await failsWith(world.apply(refused), 'resource_exhausted', { message: expect.stringMatching(/maxUnits/) });
    expect(await world.observed(refused)).toBeUndefined();
    const served = specs.filter(spec => spec !== refused);
    // One that is served may always be applied again.
    await world.apply(served[0]!);
    await world.remove(served[0]!, true);
    await world.apply(refused);
    for (const spec of [served[1]!, refused]) await world.remove(spec, true);
  });

  it.skipIf(!hasLibiscsi())('are read and written by stock clients, until they are unpublished', async () => {
    const initiator = host();
    const spec = await world.newSpec([initiator]);
    await world.apply(spec);
    const login = () => new QemuInitiator(initiator.iqn).login(spec.daemon.portals[0]!, spec.iqn, spec.lun);
    const session = await login();
    await session.write(MIB, 0x5a, MIB);
    expect(
      (await session.read(2 * MIB - 512, 1_024)).equals(
        Buffer.from([...Buffer.alloc(512, 0x5a), ...Buffer.alloc(512)]),
      ),
    ).toBe(true);
    await session.close();
    expect((await harness().readImage(spec.image, MIB, 16)).equals(Buffer.alloc(16, 0x5a))).toBe(true);
    await world.remove(spec, true);
    await expect(login()).rejects.toThrow();
    await harness().removeImage(spec.image);
    await failsWith(world.apply(spec), 'failed_precondition', { field: 'image' });
  });
});
