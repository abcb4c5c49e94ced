/** The caller's environment. Nothing else in the launcher reads it. */
// biome-ignore lint/style/noProcessEnv: the one place of the launcher that reads it
const caller = process.env;

export type Environment = Readonly<Record<string, string | undefined>>;
export const environment: Environment = caller;

const isOurs = (name: string): boolean => name.startsWith('TRIVET_') || name === 'COSI_ENDPOINT';
const chosen = (from: Environment, isWanted: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(
    Object.entries(from).filter((entry): entry is [string, string] => entry[1] !== undefined && isWanted(entry[0])),
  );

/** Trivet's own settings, as the caller gave them. */
export const settings = (from: Environment = environment): Record<string, string> => chosen(from, isOurs);

/** Everything but Trivet's settings: what a process of ours gets below the settings made for it. */
export const surroundings = (from: Environment = environment): Record<string, string> =>
  chosen(from, name => !isOurs(name));

/** For PostgreSQL, Redis and Ceph: PGDATA, CEPH_ARGS and the like of the caller must not reach them. */
export function bareEnvironment(from: Environment = environment): Record<string, string> {
  const kept = chosen(from, name => ['PATH', 'HOME', 'TZ', 'TMPDIR'].includes(name));
  const bare: Record<string, string> = { LANG: 'C.UTF-8', ...kept };
  // An unprivileged shell often lacks the folders of system daemons.
  bare.PATH = `${bare.PATH ?? '/usr/local/bin:/usr/bin:/bin'}:/usr/sbin:/sbin`;
  return bare;
}
