/** What each kind of object store can do, for docs/buckets.md: from what the kinds say of themselves. */
import type { ObjectBackendKind } from '#backends/object-backend';
import { StorageError } from '#platform/errors';

/** The least that each kind is configured by, and what it may be given to do more; what it can do follows from that. */
const CONFIGS: Readonly<Record<string, object>> = {
  rgw: { endpoint: 'http://store', region: 'default' },
  s3: { endpoint: 'http://store', oidcProvider: 'arn:aws:iam::123456789012:oidc-provider/issuer' },
  azure: { account: 'store', endpoint: 'http://store' },
  garage: { adminEndpoint: 'http://store', endpoint: 'http://store' },
  gcs: { project: 'project', workloadIdentityPool: 'project.svc.id.goog' },
};

const TITLES: Readonly<Record<string, string>> = {
  protocols: 'Protocol',
  versioning: 'Versioning',
  objectLock: 'Object lock',
  bucketQuota: 'Quota of a bucket',
  tenantQuota: 'Limit of a tenant',
  encryption: 'Encryption by parameter',
  accessesPerBucket: 'Accesses of a bucket, at most',
  bucketsPerAccess: 'Buckets of an access, at most',
  writeOnly: '`WRITE_ONLY`',
  serviceAccounts: 'Service accounts, without a key',
};
/** Of a kind that does not say. */
const OTHERWISE: Readonly<Record<string, unknown>> = { writeOnly: true };

type Row = readonly string[];

export function objectStoreTable(kinds: readonly ObjectBackendKind[]): string {
  const said = kinds.map(kind => {
    const config = CONFIGS[kind.kind];
    if (!config) throw new Error(`no configuration of kind ${kind.kind} to ask it with`);
    const capabilities = kind.registration.capabilities(kind.parseConfig(config));
    const unknown = Object.keys(capabilities).find(key => !(key in TITLES));
    if (unknown) throw new Error(`capability ${unknown} of kind ${kind.kind} has no title`);
    return { kind, capabilities, isShared: canBeShared(kind, config) };
  });
  const rows: Row[] = [
    ['', ...kinds.map(({ kind }) => `\`${kind}\``)],
    ...Object.entries(TITLES).map(([key, title]) => [
      title,
      ...said.map(({ capabilities }) => wordOf(capabilities[key] ?? OTHERWISE[key])),
    ]),
    ['Bytes of a bucket’s policy', ...kinds.map(kind => (kind.policyUnit ? '' : bytes(kind.maxPolicyBytes)))],
    ['Bytes of an access’s rights', ...kinds.map(kind => bytes(kind.maxRightsBytes ?? 0))],
    ['Keys are chosen by', ...kinds.map(({ traits }) => chooser(traits))],
    ['A key beside the former one', ...kinds.map(({ traits }) => (traits?.signs ? 'if a policy is free' : 'yes'))],
    ['Rights are seen', ...kinds.map(({ traits }) => (traits?.late ? 'late, asked for' : 'at once'))],
    ['Shared by tenants', ...said.map(({ isShared }) => wordOf(isShared))],
  ];
  return drawn(rows);
}

/** A signature is made of the account's key. */
const chooser = (traits: ObjectBackendKind['traits']): string => {
  if (traits?.issuesKeys) return 'the store';
  return traits?.signs ? 'nobody: a signature' : 'Trivet';
};
const bytes = (count: number): string => (count === 0 ? '' : count.toLocaleString('en'));

function wordOf(value: unknown): string {
  if (value === true) return 'yes';
  if (value === false || value === undefined) return '';
  return Array.isArray(value) ? value.join(', ') : String(value);
}

function canBeShared({ registration, parseConfig }: ObjectBackendKind, config: object): boolean {
  try {
    registration.share(parseConfig(config), {
      applianceId: 'appliance',
      ownerId: 'owner',
      tenant: { id: 'tenant', name: 'tenant' },
      others: [],
    });
    return true;
  } catch (error) {
    if (error instanceof StorageError) return false;
    throw error;
  }
}

/** In Markdown, with columns as wide as the formatter makes them. */
function drawn(rows: readonly Row[]): string {
  const widths = rows[0]!.map((_, at) => Math.max(3, ...rows.map(row => row[at]!.length)));
  const line = (row: Row) => `| ${row.map((cell, at) => cell.padEnd(widths[at]!)).join(' | ')} |`;
  const rule = `| ${widths.map(width => '-'.repeat(width)).join(' | ')} |`;
  const [head, ...others] = rows;
  return [line(head!), rule, ...others.map(line)].join('\n');
}

const PLACE = /(<!-- what each kind can do: \.\/trivet openapi -->\n\n)[\s\S]*?(\n\n<!-- -->)/;

/** The document with the table as it is now. */
export const withTable = (document: string, table: string): string =>
  document.replace(PLACE, (_, before: string, after: string) => `${before}${table}${after}`);
