/** What each table holds, in the order of docs/schema.sql: a table that is not here, or is not there, fails its test. */
export const SCHEMA_NOTES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'Tenants, their users and their limits': {
    appliance: 'One row: the id that goes into ownership tags at the backends.',
    appliance_backup: 'When the appliance was backed up, and to which file. Of the owner alone.',
    database_restore:
      'Rule: declared database. The cluster that this database was made in, and each that it was put back into. Reached by functions only.',
    tenant: "Tenants, and the one that the appliance's own administrators belong to (kind appliance).",
    tenant_quota: 'Limits of a tenant; no row, no limit. Rule: quotas. Kept by the triggers keep_quotas.',
    tally:
      'Rule: tallies. How many volumes, snapshots, buckets and stored steps there are, and what they hold. Kept by the triggers count_*.',
    tally_pass:
      'Rule: tally passes. When the rows of a tenant and kind were last compared with their tallies, or that they are.',
    tally_portion: 'Portions of a comparison under way: what each counted, and which transactions it saw.',
    tally_change: 'What changed while a comparison was under way.',
    tenant_user: 'People and drivers that log in.',
    session_token: 'Logins over CSP, by the hash of their tokens.',
    admin_token: 'Logins at the dashboard, and tokens of automation.',
    login_throttle: 'Rule: login throttle. Failed logins of an account or an address. Reached by functions only.',
    secret: 'All secrets, each sealed for its tenant, table, row and column.',
    saved_view: 'Lists as a user wants to see them again.',
    idempotency_key: 'Calls of the admin API that carried an Idempotency-Key, with their answers, sealed.',
    audit_entry: 'Who changed what. Rule: append-only. Outlives its tenant.',
  },
  'Where things are made, and by which doors callers come': {
    backend: 'Storage that a tenant may use: its own, or a share of the appliance’s.',
    backend_circuit: 'Whether a backend answers, and since when not.',
    endpoint: 'Sockets of COSI and CSI: each belongs to one tenant.',
    cluster: 'Kubernetes clusters that were enrolled, and may ask for endpoints over mutual TLS.',
    cluster_join_token: 'What lets one cluster in, once, by its hash.',
    pool: 'What a worker last saw of each pool of a block backend.',
    pool_sample: 'How full a pool was, once an hour.',
    finding: 'What the audit of the backends found and left alone.',
  },
  'What was used': {
    usage_hour:
      'How much a tenant had in an hour, for forecasts of its limits. An hour without a row was not measured.',
    usage_part: 'The same by backend and pool, for charging.',
    volume_day: 'How much of its pool a volume had at the begin of a day, and since a week before.',
    volume_io: 'What hosts read and wrote in a minute, one row a daemon, for a day.',
    volume_io_hour: 'The same by hour, as long as usage is kept.',
  },
  'Alerts and who is told of them': {
    alert: 'What is wrong, one row a rule and object while it lasts, and then its history.',
    alert_receiver: 'Who is told. Where that leads is sealed in secret.',
    alert_silence: 'Of what nobody is told until then.',
    alert_delivery: 'What is to be told to whom, until it was taken.',
    gateway_doors: 'What a gateway alone knows of itself, as it said last.',
  },
  'The operation engine': {
    operation:
      'Every change that was accepted, from then to its end and 30 days on. Rules: quotas, tenant cap, history.',
    operation_slot: 'What an unfinished operation needs for itself. Rule: slots. Its unique index is the lock.',
    operation_event: 'What happened to an operation. Rules: append-only, history.',
    bulk_item: 'What a bulk operation is about, and what became of each. Rule: history.',
    queue: 'Classes of operations, and whether a person has paused them.',
    fair_cap: 'How many places each line of a class has, where all of them have more than workers can soon begin.',
    worker: 'Processes that run operations.',
    storage_host: 'Machines that workers run on, and what each can reach.',
    pool_home:
      'The one host that has the file system of a pool, or serves one of a cluster. Rules: home host, export lease.',
    cluster_fence: 'Addresses of hosts that this appliance has shut out of a cluster.',
    periodic_task: 'What one worker at a time does for the appliance, who does it now, and when it last succeeded.',
  },
  'Object storage': {
    bucket: 'Buckets, made here or registered; the live row is the idempotency key.',
    access: 'Accounts that were granted to callers of COSI.',
    bucket_grant: 'Which account may do what in which bucket; the bucket’s policy is made of these rows.',
  },
  'Block storage': {
    host: 'Hosts with their initiators.',
    volume_group: 'Volumes whose snapshots are taken together.',
    volume: 'Volumes; the live row is the idempotency key, its id the name of the image.',
    publication: 'Which host may use which volume; the targets are made of these rows.',
    target_id: 'Rule: target ids. Numbers of tgt, given once over the appliance. Reached by functions only.',
    snapshot_group: 'Snapshots of a volume group, all of one instant.',
    snapshot: 'Snapshots, and deleted ones that the change index still needs.',
    protection_template: 'Schedules by which snapshots are taken.',
    volume_protection: 'When each schedule of a volume is due.',
    protection_run: 'Rule: one snapshot a period. Of each schedule and volume.',
    performance_policy: 'What volumes get where their creator says nothing.',
  },
  'Changed blocks': {
    snapshot_pin: 'Who reads the image of a snapshot, and until when it must stay.',
    change_step: 'What a snapshot holds, or what changed between two.',
    change_chunk: 'The ranges of a step, encoded.',
    change_upkeep: 'Rule: change upkeep. Volumes whose chain of changes is to be looked at.',
    snapshot_session: 'Sessions of backup software, by the hash of their tokens.',
    snapshot_session_member: 'Snapshots that a session covers.',
  },
  Migrations: {
    migration: 'Which migrations have run; TypeORM writes it.',
  },
};
