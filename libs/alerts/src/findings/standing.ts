import { asFinding, type Finding } from '#alerts/findings/attention';
import { MARKS } from '#alerts/rules';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { ENDS_SOON, SILENT } from '#tenancy/clusters/clusters';

const BACKUP = sql(
  'standing_backup',
  `SELECT taken_at AS "takenAt", host, file FROM trivet.newest_backup() WHERE taken_at < now() - $1 * interval '1 day'`,
);
const QUOTAS = sql(
  'standing_quotas',
  'SELECT tenant, key, value::text AS value, used::text AS used FROM trivet.quotas_nearly_used($1) ORDER BY tenant, key',
);
const LOGINS = sql('standing_logins', 'SELECT subject, failures FROM trivet.failing_logins($1) ORDER BY subject');
const CLUSTERS = sql(
  'standing_clusters',
  `SELECT tenant, name, silent, ends_at AS "endsAt" FROM trivet.clusters_in_need('${SILENT}', '${ENDS_SOON}') ORDER BY tenant, name`,
);
const RECEIVERS = sql(
  'standing_receivers',
  'SELECT name, waiting, error FROM trivet.receivers_failing($1) ORDER BY name',
);

export interface Standing {
  backup: { takenAt: Date; host: string; file: string } | undefined;
  quotas: { tenant: string; key: string; value: string; used: string }[];
  /** `account ann@acme`, `address 192.0.2.7`. */
  logins: { subject: string; failures: number }[];
  clusters: { tenant: string; name: string; silent: boolean; endsAt: Date | null }[];
  receivers: { name: string; waiting: number; error: string | null }[];
}

/** What is wrong with the appliance itself, and how it is used. */
export async function readStanding(database: Pick<Database, 'call'>): Promise<Standing> {
  const [backups, quotas, logins, clusters, receivers] = await Promise.all([
    database.call<NonNullable<Standing['backup']>>(BACKUP, [MARKS.backupDays]),
    database.call<Standing['quotas'][number]>(QUOTAS, [MARKS.quota]),
    database.call<Standing['logins'][number]>(LOGINS, [MARKS.loginFailures]),
    database.call<Standing['clusters'][number]>(CLUSTERS, []),
    database.call<Standing['receivers'][number]>(RECEIVERS, [MARKS.receiverMinutes]),
  ]);
  return { backup: backups[0], quotas, logins, clusters, receivers };
}

export function ofStanding({ backup, quotas, logins, clusters, receivers }: Standing): Finding[] {
  return [
    ...(backup ? [ofBackup(backup)] : []),
    ...quotas.map(ofQuota),
    ...logins.map(ofLogin),
    ...clusters.flatMap(ofCluster),
    ...receivers.map(ofReceiver),
  ].map(asFinding);
}

const ofBackup = ({ takenAt, host, file }: NonNullable<Standing['backup']>) => ({
  rule: 'backup_old' as const,
  object: '',
  what: `The newest backup of the appliance is of ${takenAt.toISOString()}: ${file} on ${host}.`,
  means: 'What was promised since then is in PostgreSQL alone.',
  todo: 'Run `trivet appliance backup`, and look why what runs it regularly did not.',
  link: null,
});

const ofQuota = ({ tenant, key, value, used }: Standing['quotas'][number]) => ({
  rule: 'quota_nearly_used' as const,
  object: `${tenant}/${key}`,
  what: `Tenant ${tenant} has used ${used} of ${value} of its quota ${key}.`,
  means: 'When it is used up, what would go beyond it is refused (507).',
  todo: 'Raise it, or have the tenant delete what it does not need.',
  link: `/tenants/${tenant}`,
});

const ofLogin = ({ subject, failures }: Standing['logins'][number]) => ({
  rule: 'logins_failing' as const,
  object: subject,
  what: `Logins fail again and again: ${subject}, ${failures} times.`,
  means: 'Somebody guesses passwords, or a program has an old one. Whoever it is waits longer after each.',
  todo: 'See the audit log for the addresses; give the program its new password.',
  link: '/audit',
});

function ofCluster({ tenant, name, silent, endsAt }: Standing['clusters'][number]) {
  const shared = { object: `${tenant}/${name}`, link: `/tenants/${tenant}/clusters` };
  return [
    ...(silent
      ? [
          {
            ...shared,
            rule: 'cluster_silent' as const,
            what: `Cluster ${name} of tenant ${tenant} has not been heard of for minutes.`,
            means: 'Its sidecars reach nothing.',
            todo: 'Look at its connector; revoke it when it is gone for good.',
          },
        ]
      : []),
    ...(endsAt
      ? [
          {
            ...shared,
            rule: 'cluster_certificate' as const,
            what: `The certificate of cluster ${name} of tenant ${tenant} ends on ${endsAt.toISOString()}.`,
            means: 'When it ends, the cluster has to join anew, by another token.',
            todo: 'Its connector should have renewed it ten days ago, and says in its log why it could not.',
          },
        ]
      : []),
  ];
}

const ofReceiver = ({ name, waiting, error }: Standing['receivers'][number]) => ({
  rule: 'receiver_failing' as const,
  object: name,
  what: `The receiver ${name} does not take what it is to be told${error ? `: ${error}` : ''}; ${waiting} wait.`,
  means: 'Who is told by it alone knows nothing of what is wrong. It is tried again for three days.',
  todo: 'Mend what the error says, then test it: what waits goes out with the next success.',
  link: '/alerts',
});
