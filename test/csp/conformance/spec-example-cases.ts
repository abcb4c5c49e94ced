import { describe, expect, it } from 'vitest';
import { type Context, expectRefusal } from '#test/csp/conformance/context';

/** Texts of the specification, with its envelope; names and ids are those of the run. */
export function specExampleCases(context: Context): void {
  /** Sends what the specification prints, below the context path. */
  const replay = (method: string, path: string, body?: string) => context.ask('data', method, path, { body });

  describe("the specification's examples", () => {
    it('tokens', async () => {
      const { username, password, arrayIp } = context.target;
      const request = `{
        "data": {
            "array_ip": ${JSON.stringify(arrayIp)},
            "username": ${JSON.stringify(username)},
            "password": ${JSON.stringify(password)}
        }
      }`;
      const { status, body } = await context.http.ask('POST', `${context.prefix('data')}/tokens`, { body: request });
      expect({ status, body }).toEqual({
        status: 200,
        body: {
          data: {
            id: expect.any(String),
            array_ip: arrayIp,
            username,
            creation_time: expect.any(Number),
            expiry_time: expect.any(Number),
            session_token: expect.any(String),
          },
        },
      });
    });

    const UUID = '41302701-0196-420f-b319-834a79891db0';
    const HOST = `{
        "name": "host-01.lab.internet.com",
        "uuid": "${UUID}",
        "iqns": [
            "iqn.2019-07.com.nimblestorage:cool-iqn",
            "iqn.2019-06.com.cloudvolumes:cooler-iqn"
        ],
        "networks": [
            "10.10.50.0",
            "10.234.60.0"
        ],
        "wwpns": []
    }`;

    it('hosts', async () => {
      const { status, body } = await replay('POST', '/hosts', `{ "data": ${HOST} }`);
      expect({ status, body }).toMatchObject({ status: 200, body: { data: { ...JSON.parse(HOST), id: UUID } } });
    });

    it('a volume from its creation to its deletion', async () => {
      const name = context.name('my-new-volume');
      const created = await replay(
        'POST',
        '/volumes',
        `{
          "data": {
            "name": "${name}",
            "size": "1073741824",
            "description": "my first volume",
            "config": {
              "performance_policy": "default",
              "protection_template": "Retain-30Daily",
              "sync_on_detach": true
            }
          }
        }`,
      );
      expect(created).toMatchObject({
        status: 200,
        body: {
          data: {
            id: expect.any(String),
            name,
            size: 1073741824,
            description: 'my first volume',
            published: false,
            base_snapshot_id: '',
            volume_group_id: expect.any(String),
            config: {
              dedupe_enabled: false,
              encrypted: false,
              pool: expect.any(String),
              folder: '',
              limit_iops: -1,
              limit_mbps: -1,
              performance_policy: 'default',
              protection_template: 'Retain-30Daily',
              sync_on_detach: true,
              thick: false,
            },
          },
        },
      });
      const { data: volume } = created.body;
      const path = `/volumes/${volume.id}`;
      expect(await replay('GET', '/volumes')).toMatchObject({
        status: 200,
        body: { data: expect.arrayContaining([volume]) },
      });
      expect(await replay('GET', path)).toMatchObject({ status: 200, body: { data: volume } });
      expect(await replay('GET', `/volumes?name=${name}`)).toMatchObject({ status: 200, body: { data: [volume] } });
      const bob = await replay('GET', '/volumes?name=bob');
      expect(bob).toMatchObject({
        status: 404,
        body: { errors: [{ code: 'Not Found', message: 'Volume with name bob not found.' }] },
      });

      const described = await replay('PUT', path, '{ "data": { "description": "my cool new description" } }');
      expect(described).toMatchObject({
        status: 200,
        body: { data: { ...volume, description: 'my cool new description' } },
      });
      const refused = await replay('PUT', path, '{ "data": { "config": { "encrypted": true } } }');
      expect(refused).toMatchObject({
        status: 400,
        body: {
          errors: [
            {
              code: 'Bad Request',
              message: "The request could not be understood by the server. Unexpected argument 'encrypted'.",
            },
          ],
        },
      });

      const publish = `{ "data": { "host_id": "${UUID}", "access_protocol": "iscsi" } }`;
      expect(await replay('PUT', `${path}/actions/publish`, publish)).toMatchObject({
        status: 200,
        body: {
          data: {
            access_protocol: 'iscsi',
            discovery_ip: expect.any(String),
            lun_id: expect.any(Number),
            serial_number: expect.stringMatching(/^[0-9a-f]+$/),
            target_name: expect.stringMatching(/^iqn\./),
          },
        },
      });
      expect(await replay('DELETE', path)).toMatchObject({
        status: 400,
        body: { errors: [{ code: 'Bad Request', message: 'Cannot delete a published volume' }] },
      });
      const fc = `{ "data": { "host_id": "${UUID}", "access_protocol": "fc" } }`;
      expectRefusal(await replay('PUT', `${path}/actions/publish`, fc), 400, /fc/);
      const unpublish = `{ "data": { "host_id": "${UUID}" } }`;
      expect(await replay('PUT', `${path}/actions/unpublish`, unpublish)).toMatchObject({ status: 204, text: '' });
      expect(await replay('DELETE', path)).toMatchObject({ status: 204, text: '' });
    });

    it('a snapshot, a clone of it, and the conflict between them', async () => {
      const source = await context.volume('data', { name: context.name('volume1'), size: 1073741824 });
      const name = context.name('my-first-snapshot');
      const made = await replay(
        'POST',
        '/snapshots',
        `{
          "data": {
            "name": "${name}",
            "description": "my first snapshot",
            "volume_id": "${source.id}",
            "config": {
                "online": false,
                "writable": false
            }
          }
        }`,
      );
      expect(made).toMatchObject({
        status: 200,
        body: {
          data: {
            id: expect.any(String),
            name,
            size: 1073741824,
            description: 'my first snapshot',
            volume_id: source.id,
            volume_name: source.name,
            creation_time: expect.any(Number),
            ready_to_use: true,
            config: { online: false, writable: false },
          },
        },
      });
      const { data: snapshot } = made.body;
      const list = { status: 200, body: { data: [snapshot] } };
      expect(await replay('GET', `/snapshots?volume_id=${source.id}`)).toMatchObject(list);
      expect(await replay('GET', `/snapshots/?volume_id=${source.id}&name=${name}`)).toMatchObject(list);
      expect(await replay('GET', `/snapshots/${snapshot.id}`)).toMatchObject({ status: 200, body: { data: snapshot } });

      const cloneName = context.name('volume2');
      const cloned = await replay(
        'POST',
        '/volumes',
        `{
          "data": {
            "name":"${cloneName}",
            "size": 1073741824,
            "base_snapshot_id":"${snapshot.id}",
            "clone": true,
            "config": {
              "performance_policy": "default",
              "protection_template": "Retain-30Daily",
              "sync_on_detach": true
            }
          }
        }`,
      );
      expect(cloned).toMatchObject({
        status: 200,
        body: {
          data: {
            id: expect.any(String),
            name: cloneName,
            size: 1073741824,
            published: false,
            base_snapshot_id: snapshot.id,
            volume_group_id: expect.any(String),
            config: {
              clone_of: source.name,
              dedupe_enabled: false,
              encrypted: false,
              folder: '',
              limit_iops: -1,
              limit_mbps: -1,
              performance_policy: 'default',
              pool: expect.any(String),
              protection_template: 'Retain-30Daily',
              sync_on_detach: true,
              thick: false,
            },
          },
        },
      });
      const conflict = await replay('DELETE', `/snapshots/${snapshot.id}`);
      expectRefusal(conflict, 409, /^The request could not be completed due to a conflict\. /);
      expect(conflict.body.errors[0].message).toBe(
        `The request could not be completed due to a conflict. Snapshot ${name} for volume ${source.name} has a clone.`,
      );
      await context.ok('data', 'DELETE', `/volumes/${cloned.body.data.id}`);
      expect(await replay('DELETE', `/snapshots/${snapshot.id}`)).toMatchObject({ status: 204 });
      await context.ok('data', 'DELETE', `/volumes/${source.id}`);
    });
  });
}
