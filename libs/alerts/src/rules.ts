/**
 * Everything that an alert may be about. Of a rule that Prometheus has as well (deploy/prometheus/alerts.yaml), severity and time
 * are the same there: error is `page`, warning is `ticket`, and `holds` is its `for`.
 */
export type Severity = 'error' | 'warning';

export interface Rule {
  severity: Severity;
  /** Seconds for which its state has to last before somebody is told. */
  holds: number;
  about: string;
  /** Name of the rule of Prometheus that says the same; null: Prometheus has no figure of it. */
  prometheus: string | null;
}

const MINUTE = 60;
const HOUR = 3_600;

const error = (holds: number, prometheus: string | null, about: string): Rule => ({
  severity: 'error',
  holds,
  about,
  prometheus,
});
const warning = (holds: number, prometheus: string | null, about: string): Rule => ({
  severity: 'warning',
  holds,
  about,
  prometheus,
});

export const RULES = {
  operation_parked: error(0, 'TrivetOperationsNeedAttention', 'Operations wait for a person'),
  operation_retried: warning(5 * MINUTE, null, 'Operations have failed more than three times and are tried again'),
  slow_call: warning(5 * MINUTE, 'TrivetCallDoesNotReturn', 'A call to a backend does not return'),
  interface_down: error(2 * MINUTE, 'TrivetNotReady', 'A gateway does not serve one of its interfaces'),
  interface_degraded: warning(5 * MINUTE, null, 'A gateway serves one of its interfaces in part'),
  certificate_ended: error(0, null, 'The TLS certificate of a gateway has expired'),
  certificate_ending: warning(0, null, 'The TLS certificate of a gateway expires soon'),
  worker_none: error(MINUTE, 'TrivetNoWorker', 'No worker is up'),
  worker_lost: warning(10 * MINUTE, 'TrivetWorkerLost', 'A worker is silent and has not ended in order'),
  task_late: warning(5 * MINUTE, 'TrivetTaskLate', 'A periodic task has not succeeded for too long'),
  queue_paused: warning(4 * HOUR, 'TrivetQueuePaused', 'A class of operations is paused'),
  storage_host_down: error(MINUTE, 'TrivetStorageHostDown', 'A storage host that has pools is silent'),
  storage_host_draining: warning(4 * HOUR, null, 'A storage host is being drained'),
  backend_silent: error(5 * MINUTE, 'TrivetOperationsWaitForBackend', 'A backend does not answer'),
  backend_fault: error(MINUTE, null, 'A backend cannot be used as it is configured'),
  pool_down: error(MINUTE, 'TrivetPoolDown', 'A pool is down'),
  pool_filling: warning(5 * MINUTE, 'TrivetPoolFilling', 'A pool is filling: nothing new is made in it'),
  pool_full: error(MINUTE, 'TrivetPoolFull', 'A pool is nearly full'),
  image_lost: error(0, 'TrivetImageLost', 'A volume or snapshot has no image, or one of a wrong size'),
  orphan: warning(15 * MINUTE, 'TrivetOrphans', 'A backend has something that no row knows'),
  object_withheld: warning(5 * MINUTE, null, 'A volume, snapshot or bucket is not served'),
  cluster_silent: warning(5 * MINUTE, 'TrivetClusterSilent', 'A cluster has not been heard of'),
  cluster_certificate: warning(HOUR, 'TrivetClusterCertificateEnds', 'The certificate of a cluster ends soon'),
  backup_old: warning(0, null, 'The newest backup of the appliance is old'),
  quota_nearly_used: warning(5 * MINUTE, null, 'A tenant has nearly used up a quota'),
  logins_failing: warning(0, null, 'Logins of an account, or from an address, fail again and again'),
  receiver_failing: warning(0, null, 'A receiver of alerts does not take them'),
} as const satisfies Readonly<Record<string, Rule>>;

export type RuleName = keyof typeof RULES;
export const RULE_NAMES = Object.keys(RULES) as readonly RuleName[];

/** From where on what has no mark elsewhere needs attention. */
export const MARKS = {
  /** Of an appliance that was backed up once at least: a week, and a day for one that is late. */
  backupDays: 8,
  /** Part of a quota. */
  quota: 0.9,
  /** Of which one is forgiven a minute. */
  loginFailures: 10,
  /** Minutes for which what a receiver is to be told waits. */
  receiverMinutes: 15,
  /** For which a call must not have returned before anybody is told; the overview shows it after one. */
  slowCallMinutes: 10,
  /** Of TLS. */
  certificateDays: 14,
} as const;
