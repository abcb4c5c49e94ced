import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CommandHome } from '#test/support/command-home';

let home: CommandHome;
beforeAll(async () => {
  home = await CommandHome.create();
  expect((await home.trivet(['migrate'])).code).toBe(0);
});
afterAll(() => home?.close());

describe('trivet protection', () => {
  it('keeps templates: what is added is listed as it was written, until it is removed', async () => {
    const schedules = ['hourly:1h:48', 'nightly:1d@02:30:30', 'weekly:1w@sun-03:00:52'];
    expect(await home.trivet(['protection', 'add', 'mine', ...schedules])).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await home.trivet(['protection', 'list']);
    expect(stdout).toMatch(new RegExp(`^mine +0 +no +${schedules.join(' ')}$`, 'm'));
    expect(stdout).toMatch(/^Retain-30Daily +0 +yes +daily:1d:30$/m);
    expect(stdout).toContain('hourly:1h:48 daily:1d:30 weekly:1w@sun-00:00:52');
    expect(await home.trivet(['protection', 'remove', 'mine'])).toMatchObject({ code: 0, stderr: '' });
    const left = JSON.parse((await home.trivet(['protection', 'list', '--json'])).stdout) as { name: string }[];
    expect(left.map(({ name }) => name)).toEqual([
      'Retain-30Daily',
      'Retain-48Hourly-30Daily-52Weekly',
      'Retain-90Daily',
    ]);
  });

  it.each([
    [['add', 'x', 'hourly'], 'NAME:EVERY:RETAIN', 65],
    [['add', 'Retain-30Daily', 'hourly:1h:1'], 'there is a protection template Retain-30Daily already', 1],
    [['remove', 'Retain-30Daily'], 'is shipped and stays', 1],
    [['list', '--tenant', 'nowhere'], 'there is no tenant nowhere', 1],
  ])('refuses %j in one line', async (args, message, refused) => {
    const { code, stderr } = await home.trivet(['protection', ...args]);
    expect(code).toBe(refused);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toContain(message);
  });
});

describe('trivet policy', () => {
  it('keeps policies: what is added is listed with what it sets, until it is removed', async () => {
    const add = ['policy', 'add', 'Cold data', 'thick=false', 'pool=slow', '--description', 'rarely read'];
    expect(await home.trivet(add)).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await home.trivet(['policy', 'list']);
    expect(stdout).toMatch(/^Cold data +no +pool=slow thick=false +rarely read$/m);
    expect(stdout).toMatch(/^SQL Server +yes +Database$/m);
    expect(await home.trivet(['policy', 'remove', 'Cold data'])).toMatchObject({ code: 0, stderr: '' });
    expect((await home.trivet(['policy', 'list'])).stdout).not.toContain('Cold data');
  });

  it.each([
    [['add', 'x', 'thick'], 'expected KEY=VALUE', 65],
    [['add', 'x', 'colour=red'], 'a policy cannot set it', 65],
    [['remove', 'default'], 'is shipped and stays', 1],
  ])('refuses %j in one line', async (args, message, refused) => {
    const { code, stderr } = await home.trivet(['policy', ...args]);
    expect(code).toBe(refused);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toContain(message);
  });
});
