import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CommandLine } from '#test/admin/commands/command-line';

const line = new CommandLine();
beforeAll(() => line.startGateway());
afterAll(() => line.close());

describe('trivet protection', () => {
  it('keeps templates: what is made is listed as it was written, until it is deleted', async () => {
    const schedules = ['hourly:1h:48', 'nightly:1d@02:30:30', 'weekly:1w@sun-03:00:52'];
    expect(await line.run(['protection', 'create', 'mine', ...schedules])).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await line.run(['protection', 'list']);
    expect(stdout).toMatch(new RegExp(`^mine +0 +no +${schedules.join(' ')}$`, 'm'));
    expect(stdout).toMatch(/^Retain-30Daily +0 +yes +daily:1d:30$/m);
    expect(stdout).toContain('hourly:1h:48 daily:1d:30 weekly:1w@sun-00:00:52');
    expect(await line.run(['protection', 'delete', 'mine'])).toMatchObject({ code: 0, stderr: '' });
    const { items } = await line.json(['protection', 'list']);
    expect(items.map(({ name }: { name: string }) => name)).toEqual([
      'Retain-30Daily',
      'Retain-48Hourly-30Daily-52Weekly',
      'Retain-90Daily',
    ]);
  });

  it.each([
    [['create', 'x', 'hourly'], 'NAME:EVERY:RETAIN', 65],
    [['create', 'Retain-30Daily', 'hourly:1h:1'], 'there is a protection template Retain-30Daily already', 1],
    [['delete', 'Retain-30Daily'], 'is shipped and stays', 1],
    [['list', '--tenant', 'nowhere'], 'there is no tenant nowhere', 1],
  ])('refuses %j', async (args, message, refused) => {
    const { code, stderr } = await line.run(['protection', ...args]);
    expect(code).toBe(refused);
    expect(stderr.split('\n')[0]).toContain(message);
  });
});

describe('trivet policy', () => {
  it('keeps policies: what is made is listed with what it sets, until it is deleted', async () => {
    const make = ['policy', 'create', 'Cold data', 'thick=false', 'pool=slow', '--description', 'rarely read'];
    expect(await line.run(make)).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await line.run(['policy', 'list']);
    expect(stdout).toMatch(/^Cold data +no +pool=slow thick=false +rarely read$/m);
    expect(stdout).toMatch(/^SQL Server +yes +Database$/m);
    expect(await line.run(['policy', 'delete', 'Cold data'])).toMatchObject({ code: 0, stderr: '' });
    expect((await line.run(['policy', 'list'])).stdout).not.toContain('Cold data');
    for (const action of ['create', 'delete'])
      expect(await line.house.audit(`performance-policy.${action}`)).toMatchObject([
        { actor: 'the-admin@appliance', tenant_name: 'default', subject_name: 'Cold data' },
      ]);
  });

  it.each([
    [['create', 'x', 'thick'], 'expected KEY=VALUE', 65],
    [['create', 'x', 'colour=red'], 'a policy cannot set it', 65],
    [['create', '-x', 'thick=true'], 'unknown option -x', 2],
    [['delete', 'default'], 'is shipped and stays', 1],
    [['delete', 'no-such'], 'there is no performance policy no-such', 1],
  ])('refuses %j', async (args, message, refused) => {
    const { code, stderr } = await line.run(['policy', ...args]);
    expect(code).toBe(refused);
    expect(stderr.split('\n')[0]).toContain(message);
  });
});
