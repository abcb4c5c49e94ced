import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MissingPrincipal, type ObjectBackend } from '#backends/object-backend';
import { s3Kind } from '#backends/s3/s3-kind';
import { unleased } from '#platform/lease-signal';
import { type ScriptedAnswer, type ScriptedRequest, ScriptedStore } from '#test/support/scripted-store';

const UID = 'trivet-1';
const BUCKET = { name: 'photos', incarnation: '0198c0de-0000-7000-8000-000000000001' };
const soon = () => unleased(AbortSignal.timeout(30_000));

describe('S3 with IAM', () => {
  let store: ScriptedStore;
  let backend: ObjectBackend;
  afterEach(async () => {
    vi.useRealTimers();
    vi.restoreAllMocks();
    backend.close();
    await store.close();
  });

  async function open(answer: (request: ScriptedRequest) => ScriptedAnswer, config: object = {}): Promise<void> {
    store = await new ScriptedStore(answer).start();
    backend = s3Kind.open(
      s3Kind.parseConfig({ endpoint: store.endpoint, ...config }),
      { accessKeyId: 'ours', secretAccessKey: 'ours' },
      { applianceId: 'a', tenantId: 't' },
    );
  }

  describe('rights', () => {
    it('takes them away whatever has become of the bucket', async () => {
      await open(({ what }) => (what === 'DeleteUserPolicy' ? { body: '' } : { status: 404, code: 'NoSuchTagSet' }));
      await backend.putGrants(BUCKET, [], soon(), [UID]);
      expect(store.asked).toEqual(['DeleteUserPolicy']);
    });

    it('denies at a bucket that is gone', async () => {
      await open(({ what }) => {
        if (what === 'GetUserPolicy') return { status: 404, code: 'NoSuchEntity' };
        return what === 'PutUserPolicy' ? { body: '' } : { status: 404, code: 'NoSuchBucket' };
      });
      await backend.putGrants(BUCKET, [{ uid: UID, mode: 'revoked' }], soon(), [UID]);
      expect(store.asked).toEqual(['GetUserPolicy', 'PutUserPolicy']);
      expect(JSON.parse(store.requests.at(-1)!.form.get('PolicyDocument')!).Statement).toMatchObject([
        { Effect: 'Deny', Action: ['s3:*'] },
      ]);
    });

    it.each(['trivet-1', 'trivet-sa-1'])('says that IAM does not know %s', async uid => {
      await open(({ what }) => {
        if (what !== 'GET tagging') return { status: 404, code: 'NoSuchEntity' };
        const tags = { 'trivet-appliance': 'a/t', 'trivet-incarnation': BUCKET.incarnation };
        const tag = ([key, value]: string[]) => `<Tag><Key>${key}</Key><Value>${value}</Value></Tag>`;
        return { body: `<Tagging><TagSet>${Object.entries(tags).map(tag).join('')}</TagSet></Tagging>` };
      });
      const granted = backend.putGrants(BUCKET, [{ uid, mode: 'read_only' }], soon(), [uid]);
      await expect(granted).rejects.toThrow(MissingPrincipal);
    });

    it('allows nothing at a bucket that is gone', async () => {
      await open(() => ({ status: 404, code: 'NoSuchBucket' }));
      const granted = backend.putGrants(BUCKET, [{ uid: UID, mode: 'read_only' }], soon(), [UID]);
      await expect(granted).rejects.toMatchObject({ kind: 'not_found' });
      expect(store.asked).toEqual(['GET tagging']);
    });
  });

  it('keeps the key that is in use, and takes the other one away', async () => {
    const keys = ['AKIAUSED000000000000', 'AKIALATE000000000000'];
    await open(({ what }) => {
      if (what === 'CreateUser') return { status: 409, code: 'EntityAlreadyExists' };
      if (what === 'GetUser')
        return {
          body: `<User><UserName>${UID}</UserName><Tags><member><Key>trivet-appliance</Key><Value>a/t</Value></member></Tags></User>`,
        };
      if (what === 'ListAccessKeys')
        return {
          body: `<AccessKeyMetadata>${keys.map(id => `<member><AccessKeyId>${id}</AccessKeyId><Status>Active</Status></member>`).join('')}</AccessKeyMetadata>`,
        };
      return { body: '' };
    });
    const principal = { uid: UID, accessKeyId: keys[0]!, secretAccessKey: 'kept', displayName: 'one' };
    await backend.putPrincipal(principal, soon());
    const removed = store.requests.filter(({ what }) => what === 'DeleteAccessKey');
    expect(removed.map(({ form }) => form.get('AccessKeyId'))).toEqual([keys[1]]);
  });

  describe('an assumed role', () => {
    const config = { roleArn: 'arn:aws:iam::123456789012:role/trivet' };
    const role = (accessKeyId: string, expiration: Date): ScriptedAnswer => ({
      body: `<Credentials><AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${expiration.toISOString()}</Expiration></Credentials>`,
    });
    const inAnHour = () => new Date(Date.now() + 3_600_000);
    const rest = (what: string): ScriptedAnswer =>
      what.startsWith('GET') ? { body: '<ListAllMyBucketsResult/>' } : { body: '' };

    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['Date'] });
    });

    it('is assumed once for all who need it at the same moment', async () => {
      await open(({ what }) => (what === 'AssumeRole' ? role('ASIA1', inAnHour()) : rest(what)), config);
      const assumed = () => store.asked.filter(what => what === 'AssumeRole').length;
      const five = () => Promise.all(Array.from({ length: 5 }, () => backend.health(soon())));
      await five();
      expect(assumed()).toBe(1);
      vi.setSystemTime(Date.now() + 58 * 60_000);
      await five();
      expect(assumed()).toBe(2);
    });

    it('is assumed anew before its end, for S3 and for IAM', async () => {
      let assumed = 0;
      await open(({ what }) => {
        if (what !== 'AssumeRole') return rest(what);
        assumed += 1;
        return role(`ASIA${assumed}`, inAnHour());
      }, config);
      const drop = () => backend.putGrants(BUCKET, [], soon(), [UID]);
      await drop();
      vi.setSystemTime(Date.now() + 58 * 60_000);
      await backend.health(soon());
      await drop();
      const users = store.requests.filter(({ what }) => what !== 'AssumeRole').map(({ accessKeyId }) => accessKeyId);
      expect(users).toEqual(['ASIA1', 'ASIA2', 'ASIA2']);
    });

    it('is not waited for without end', async () => {
      const bound = new AbortController();
      const timeout = AbortSignal.timeout.bind(AbortSignal);
      await open(({ what }) => {
        if (what === 'AssumeRole') bound.abort();
        return undefined;
      }, config);
      vi.spyOn(AbortSignal, 'timeout').mockImplementation(ms => (ms === 5_000 ? bound.signal : timeout(ms)));
      await expect(backend.health(soon())).rejects.toMatchObject({
        kind: 'unavailable',
        message: expect.stringContaining('assume the role'),
      });
    });
  });
});
