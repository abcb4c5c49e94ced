import { describe, expect, it } from 'vitest';
import { type Context, DIALECTS, MIB } from '#test/csp/conformance/context';
import { RealDriver } from '#test/csp/driver-client';

/** As the driver sends them: keys by its own rule, values as text. */
const REFUSED: [parameter: string, key: string, value: string][] = [
  ['snapshot', 'snapshot', 'nightly'],
  ['createSnapshot', 'create_snapshot', 'true'],
  ['virtualCopyOf', 'virtual_copy_of', 'data'],
  ['takeover', 'takeover', 'true'],
  ['reverseReplication', 'reverse_replication', 'true'],
  ['forceImport', 'force_import', 'true'],
  ['remoteCopyGroup', 'remote_copy_group', 'rcg'],
  ['replicationDevices', 'replication_devices', 'devices'],
  ['replicationPolicy', 'replication_policy', 'active'],
  ['periodicReplicationInterval', 'periodic_replication_interval', '15'],
  ['oneRcgPerPvc', 'one_rcg_per_pvc', 'true'],
  ['allowBatchReplicatedVolumeCreation', 'allow_batch_replicated_volume_creation', 'true'],
  ['primarySecret', 'primary_secret', 'one'],
  ['primarySecretNamespace', 'primary_secret_namespace', 'two'],
  ['cpg', 'cpg', 'SSD_r6'],
  ['snapCpg', 'snap_cpg', 'SSD_r6'],
  ['root', 'root', 'tank/csi'],
  ['qosName', 'qos_name', 'gold'],
  ['hostSeesVLUN', 'host_sees_vlun', 'true'],
  ['fcPortsList', 'fc_ports_list', '0:5:1'],
  ['iscsiPortalIps', 'iscsi_portal_ips', '192.0.2.7'],
  ['provisioningType', 'provisioning_type', 'reduce'],
  ['sparse', 'sparse', 'false'],
  ['compression', 'compression', 'LZ4'],
  ['deduplication', 'deduplication', 'ON'],
  ['volblocksize', 'volblocksize', '16K'],
  ['sync', 'sync', 'DISABLED'],
];

export function parameterCases(context: Context): void {
  describe('parameters of a StorageClass', () => {
    it.each(REFUSED)('%s is refused, and no empty volume is made', async (parameter, key, value) => {
      const name = context.name('pvc');
      const body = { name, size: MIB, config: { multi_initiator: false, [key]: value } };
      const about = new RegExp(`^config\\.${key}: .*; remove the line ${parameter} from the StorageClass$`);
      await context.refuse('bare', 'POST', '/volumes', body, 400, about);
      await context.refuse('bare', 'GET', `/volumes?name=${name}`, undefined, 404);
    });

    it('that ask for nothing are kept', async () => {
      const config = {
        take_over: 'x',
        takeover: 'false',
        snapshot: '',
        provisioning_type: 'tpvv',
        compression: 'OFF',
        sparse: 'true',
        sync: 'STANDARD',
        virtual_domain: 'v',
      };
      expect((await context.volume('bare', { config })).config).toMatchObject(config);
    });
  });

  describe('clones by name', () => {
    it.each(DIALECTS)('%s: are of that volume, also when they are asked for again without it', async dialect => {
      const source = await context.volume(dialect);
      for (const key of ['clone_of', 'cloneOf', 'import_vol_as_clone', 'importVolAsClone']) {
        const body = { name: context.name('pvc'), size: 2 * MIB, config: { [key]: source.name } };
        const clone = await context.ok(dialect, 'POST', '/volumes', body);
        expect(clone).toMatchObject({ name: body.name, size: 2 * MIB, parent_volume_id: source.id });
        expect(clone.config).toMatchObject({ clone_of: source.name, background_operation_status: 'Completed' });
        expect(await context.ok(dialect, 'POST', '/volumes', body)).toEqual(clone);
        await context.refuse(dialect, 'POST', '/volumes', { ...body, config: {} }, 409, body.name);
        if (key !== 'importVolAsClone') continue;
        await context.ok(dialect, 'DELETE', `/volumes/${source.id}`);
        expect(await context.ok(dialect, 'POST', '/volumes', body)).toMatchObject({ id: clone.id });
      }
    });

    it('of nothing, or of two things, are refused', async () => {
      const source = await context.volume('bare');
      const name = context.name('pvc');
      const refuse = (field: string, config: object, more: object = {}) =>
        context.refuse(
          'bare',
          'POST',
          '/volumes',
          { name, size: MIB, config, ...more },
          400,
          new RegExp(`^${field}: `),
        );
      for (const key of ['clone_of', 'import_vol_as_clone', 'import_volume_name']) {
        await refuse(`config.${key}`, { [key]: 'not-there' });
        await refuse(`config.${key}`, { [key]: 'n'.repeat(300) });
        await refuse(`config.${key}`, { [key]: name });
        await refuse(`config.${key}`, { [key]: source.name }, { clone: true, parent_volume_id: source.id });
      }
      await refuse('config.cloneOf', { clone_of: source.name, cloneOf: name });
      await refuse('config.import_vol_as_clone', { clone_of: source.name, import_vol_as_clone: source.name });
      await context.refuse('bare', 'GET', `/volumes?name=${name}`, undefined, 404);
    });
  });

  describe('an import', () => {
    it('gives a volume its new name, once, with what it holds', async () => {
      const volume = await context.volume('bare', { size: 2 * MIB, config: { fs_type: 'xfs' } });
      const snapshot = await context.snapshot('bare', volume.id);
      const body = {
        name: context.name('pvc'),
        size: 2 * MIB,
        config: { import_volume_name: volume.name, multi_initiator: false, destroy_on_delete: 'true' },
      };
      const imported = await context.ok('bare', 'POST', '/volumes', body);
      expect(imported).toMatchObject({ id: volume.id, name: body.name, size: 2 * MIB });
      expect(imported.config).toMatchObject({ ...body.config, fs_type: 'xfs' });
      expect(await context.ok('bare', 'POST', '/volumes', body)).toEqual(imported);
      expect(await context.ok('bare', 'GET', `/volumes?name=${body.name}`)).toEqual([imported]);
      await context.refuse('bare', 'GET', `/volumes?name=${volume.name}`, undefined, 404);
      expect(await context.ok('bare', 'GET', `/snapshots/${snapshot.id}`)).toMatchObject({ volume_name: body.name });
      // The old name is free, and a repeat does not take the volume that has it now.
      await context.volume('bare', { name: volume.name, size: 2 * MIB });
      expect(await context.ok('bare', 'POST', '/volumes', body)).toMatchObject({ id: volume.id });
    });

    it('of another size, or of what a host uses, is refused', async () => {
      const volume = await context.volume('bare');
      const body = { name: context.name('pvc'), size: 2 * MIB, config: { import_volume_name: volume.name } };
      await context.refuse('bare', 'POST', '/volumes', body, 400, /^size: .* 1048576 bytes/);
      const host = await context.host('bare', { chap_user: context.name('chap'), chap_password: 'pass-word-1234' });
      const publication = { host_uuid: host.uuid, access_protocol: 'iscsi' };
      await context.ok('bare', 'PUT', `/volumes/${volume.id}/actions/publish`, publication);
      await context.refuse('bare', 'POST', '/volumes', { ...body, size: MIB }, 409, /published/);
      await context.ok('bare', 'PUT', `/volumes/${volume.id}/actions/unpublish`, publication, 204);
      const other = await context.volume('bare');
      await context.refuse('bare', 'POST', '/volumes', { ...body, size: MIB, name: other.name }, 409, other.name);
      expect(await context.ok('bare', 'GET', `/volumes/${volume.id}`)).toMatchObject({ name: volume.name });
    });
  });

  it('a clone whose answer was lost is found with what it was made from', async () => {
    const { url, username, password, arrayIp } = context.target;
    const driver = new RealDriver({ service: url, backend: arrayIp, username, password });
    const source = await driver.createVolume(context.name('pvc'), MIB);
    const snapshot = await driver.createSnapshot(source.id, context.name('snapshot'));
    for (const from of [{ snapshotId: snapshot.id }, { volumeId: source.id }]) {
      const name = context.name('pvc');
      const made = await driver.createVolume(name, MIB, {}, from);
      expect(await driver.createVolume(name, MIB, {}, from)).toEqual(made);
    }
    expect(source.config).not.toHaveProperty('background_operation_status');
  });
}
