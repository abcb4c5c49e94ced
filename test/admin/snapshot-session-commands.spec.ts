import { afterAll, beforeAll, expect, it } from 'vitest';
import { CommandLine } from '#test/admin/commands/command-line';
import { idOf, makeVolume } from '#test/admin/resource-calls';

const line = new CommandLine();
beforeAll(() => line.start());
afterAll(() => line.close());

it('trivet snapshot-session lists sessions, shows what each covers, and ends one', async () => {
  const { house, run, json } = line;
  const none = await run(['snapshot-session', 'list', '--tenant', 'acme']);
  expect(none).toMatchObject({ code: 0, stdout: 'no sessions: backup software opens them\n' });
  const volume = idOf(await makeVolume(house, house.acme, 'data'));
  const asked = { body: { volume, name: 'nightly' } };
  const snapshot = idOf(await house.call(house.acme.operator, 'POST', '/tenants/acme/snapshots', asked));
  const owner = { tenantId: house.acme.id, userId: house.acme.operator.userId };
  const open = (name: string, snapshots: string[]) => house.parts.snapshotSessions.create(owner, { name, snapshots });
  const { id, token } = await open('backup', ['nightly', snapshot]);
  const failed = await open('wrong', ['no-such']);

  const list = await run(['snapshot-session', 'list', '--tenant', 'acme']);
  expect(list).toMatchObject({ code: 0, stderr: '' });
  expect(list.stdout).toMatch(new RegExp(`^backup +ready +${house.acme.operator.name} +2 +in \\S+ +\\S+ +${id}$`, 'm'));
  expect(list.stdout).toMatch(new RegExp(`^wrong +failed +.*${failed.id}$`, 'm'));
  const { stdout } = await run(['snapshot-session', 'show', id, '--tenant', 'acme']);
  expect(stdout).toMatch(/^state +ready$/m);
  expect(stdout).toMatch(new RegExp(`^snapshots +nightly of volume data, ${snapshot}$`, 'm'));
  expect(stdout).toMatch(new RegExp(`^ +${snapshot} of volume data$`, 'm'));
  const why = await run(['snapshot-session', 'show', failed.id, '--tenant', 'acme']);
  expect(why.stdout).toMatch(/^error +snapshot no-such does not exist$/m);
  expect(await json(['snapshot-session', 'show', id, '--tenant', 'acme'])).toMatchObject({ id, state: 'ready' });

  const end = ['snapshot-session', 'end', id, '--tenant', 'acme'];
  expect((await run(end, { who: house.acme.viewer })).code).not.toBe(0);
  expect(await house.parts.snapshotSessions.authenticate(token!)).toBeDefined();
  expect(await run(end)).toMatchObject({ code: 0, stdout: `${id} is ended\n` });
  const { items } = await json(['snapshot-session', 'list', '--tenant', 'acme']);
  expect(items.map((item: { name: string }) => item.name)).toEqual(['wrong']);
  expect(await run(end)).toMatchObject({ code: 1, stderr: expect.stringContaining(`there is no session ${id}`) });
});
