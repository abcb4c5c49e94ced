import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import type { Status } from '../launcher/cli.js';
import { type BareDebian, type Person, ROOT } from './bare-debian.js';

export interface Walk {
  as: Person;
  /** Where the clone is put. */
  clone: string;
  npm: string;
  /** Parts that cannot run for this person. */
  skipped: string[];
  /** It is given what is built. */
  built?: true;
}

/** What README has a new user do, in a clone in an empty folder, to the end. */
export async function walkReadme(debian: BareDebian, { as, clone, npm, skipped, built }: Walk): Promise<void> {
  await debian.putClone(clone);
  // After the clone, whose folders are younger than what was built.
  if (built) await debian.putBuilt(clone);
  await debian.shareNpmCache(ROOT, as);
  await debian.must(`chown -R ${as.name}: ${clone}`);
  const here = { as, at: clone };
  expect((await debian.must('npm --version', here)).trim()).toBe(npm);
  const before = { processes: await debian.processes(), mounts: await debian.mounts() };

  const up = await debian.sh('./trivet up --detach', here);
  expect(up, up.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining('trivet: installing packages') });
  expect(up.stderr.includes('trivet: building\n')).toBe(built === undefined);
  const status = JSON.parse(await debian.must('./trivet status --json', here)) as Status;
  expect(status, up.stdout).toMatchObject({ state: 'ready' });
  expect(status.skipped.map(({ part }) => part)).toEqual(skipped);
  expect(status.backends.map(({ name, state }) => `${name} ${state}`)).toEqual(['local up', 'rgw up']);
  const demo = await debian.must('./trivet demo', here);
  expect(demo).toContain('demo: done, and nothing is left behind');
  expect(demo).not.toContain('skipped');
  const doctor = await debian.sh('./trivet doctor', here);
  expect({ code: doctor.code, fails: doctor.stdout.match(/^fail .*$/gm) }, doctor.stdout).toEqual({
    code: 0,
    fails: null,
  });
  await debian.must('./trivet down --purge --yes', here);

  expect({ processes: await debian.processes(), mounts: await debian.mounts() }).toEqual(before);
  for (const path of [`${clone}/.trivet`, '/run/trivet', '/var/lib/trivet', '/var/log/ceph/ceph.log']) {
    expect(existsSync(debian.path(path)), path).toBe(false);
  }
  const loops = await debian.must('losetup --list --noheadings --output BACK-FILE || :');
  expect(loops).not.toContain(clone);
}

/** A person of whom the system knows nothing but the name. */
export async function addPerson(debian: BareDebian, name: string, bin?: string): Promise<Person> {
  await debian.must(`useradd --create-home --shell /bin/sh ${name}`);
  return { name, home: `/home/${name}`, ...(bin === undefined ? {} : { bin }) };
}

/** npm by npm, as a newer or older one is had beside that of the system. */
export async function addNpm(debian: BareDebian, as: Person, version: string): Promise<void> {
  await debian.must(`npm install --global --prefix ${as.home}/npm --silent npm@${version}`, { as });
}
