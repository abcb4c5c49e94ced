/** The caller's environment. Nothing else in the launcher reads it. */
// biome-ignore lint/style/noProcessEnv: the one place of the launcher that reads it
const caller = process.env;

export type Environment = Readonly<Record<string, string | undefined>>;
export const environment: Environment = caller;

/** Trivet's own settings, as the caller gave them. */
export function settings(from: Environment = environment): Record<string, string> {
  const ours: Record<string, string> = {};
  for (const [name, value] of Object.entries(from)) {
    if (value !== undefined && (name.startsWith('TRIVET_') || name === 'COSI_ENDPOINT')) ours[name] = value;
  }
  return ours;
}

/** Everything but Trivet's settings: what a process of ours gets below the settings made for it. */
export function surroundings(from: Environment = environment): Record<string, string> {
  const rest: Record<string, string> = {};
  for (const [name, value] of Object.entries(from)) {
    if (value !== undefined && !name.startsWith('TRIVET_') && name !== 'COSI_ENDPOINT') rest[name] = value;
  }
  return rest;
}

/** For PostgreSQL, Redis and Ceph: PGDATA, CEPH_ARGS and the like of the caller must not reach them. */
export function bareEnvironment(from: Environment = environment): Record<string, string> {
  const bare: Record<string, string> = { LANG: 'C.UTF-8' };
  for (const name of ['PATH', 'HOME', 'TZ', 'TMPDIR']) {
    const value = from[name];
    if (value !== undefined) bare[name] = value;
  }
  // An unprivileged shell often lacks the folders of system daemons.
  bare.PATH = `${bare.PATH ?? '/usr/local/bin:/usr/bin:/bin'}:/usr/sbin:/sbin`;
  return bare;
}
