/**
 * Who may import whom; `npm run lint` and `./trivet test` refuse the rest. A type counts as a value does. Specs, test/ and the
 * conformance suites may import what they like of each room.
 */
const TESTS = '[.]spec[.]ts$|^test/|^libs/backends/src/conformance/';

const PORTS =
  'libs/backends/src/(object-backend|block-backend|image-ref|image-share|exporter|extent-source|cluster-exports|lease-demand)[.]ts$';
const REGISTRY = 'libs/backends/src/registry[.]ts$';
const KIND_FORMS = 'libs/backends/src/kind-forms[.]ts$';

/** Each room, and what it may import of others. Data walks one way: protocol library, storage, operations, backend. */
const ROOMS = {
  'libs/platform': [],
  'libs/tenancy': ['libs/platform/'],
  'libs/operations': ['libs/(tenancy|platform)/'],
  'libs/backends': ['libs/platform/'],
  'libs/storage': ['libs/(operations|tenancy|platform)/', PORTS, REGISTRY],
  'libs/changes': ['libs/(storage|operations|tenancy|platform)/', PORTS, REGISTRY],
  'libs/alerts': ['libs/(storage|operations|tenancy|platform)/'],
  'libs/protocol': ['libs/platform/'],
  'libs/cosi': ['libs/(protocol|storage|changes|operations|tenancy|platform)/', PORTS],
  'libs/csp': ['libs/(protocol|storage|changes|operations|tenancy|platform)/', PORTS],
  'libs/cbt': ['libs/(protocol|storage|changes|operations|tenancy|platform)/', PORTS],
  'libs/admin': ['libs/(protocol|alerts|storage|changes|operations|tenancy|platform)/', PORTS, KIND_FORMS],
  'apps/gateway': ['libs/'],
  'apps/connector': ['libs/(protocol|platform)/'],
  'apps/worker': ['libs/'],
  'apps/cli': ['libs/'],
  'apps/dashboard': ['libs/admin/src/contract/'],
};

/** Packages, and modules of Node, that only these may import. */
const PACKAGES = [
  [
    'pg|pg-[^/]+|ioredis',
    ['libs/platform/'],
    'Only libs/platform opens Postgres and Redis: use Database and connectRedis.',
  ],
  ['tar-stream', ['libs/platform/src/dump/'], 'One file knows the form of a dump: use DumpWriter and readDump.'],
  ['nodemailer', ['libs/alerts/'], 'Only libs/alerts sends mail.'],
  ['bullmq', ['libs/operations/'], 'Only libs/operations talks to the queue.'],
  ['@aws-sdk|@smithy', ['libs/backends/', 'apps/cli/'], 'Only libs/backends talks to a backend.'],
  [
    '@nestjs/(core|microservices|platform-fastify)|fastify|@grpc|grpc-health-check',
    ['libs/(protocol|admin|cbt|cosi|csp)/', 'apps/'],
    'The domain knows no protocol: HTTP and gRPC belong to the rooms and the apps.',
  ],
  ['@opentelemetry', ['libs/platform/src/tracing/otel[.]ts'], 'One file knows the library: use tracing.ts.'],
  ['koffi', ['libs/backends/src/linux/', 'libs/platform/', 'apps/cli/'], 'System calls are made in linux/.'],
];

/** Where a package is loaded by createRequire, which no rule sees, because it must be loaded late. */
const LOADED_LATE = [
  'libs/platform/src/connections/redis.ts',
  'libs/platform/src/process/allocator.ts',
  'libs/operations/src/queue/bullmq.ts',
  'libs/alerts/src/deliver/send-mail.ts',
  'libs/backends/src/azure/storage-blob.ts',
  'libs/backends/src/gcs/google-auth.ts',
  'libs/backends/src/s3/aws-sdk.ts',
  'libs/backends/src/linux/libc.ts',
  'libs/backends/src/linux/file-lock.ts',
  'libs/backends/src/linux/foreign.ts',
  'apps/cli/src/doctor/clock.ts',
  'apps/cli/src/testing/orphans.ts',
  // Writes the cache of compiled code, and loads nothing.
  'libs/platform/src/process/boot.ts',
];

/**
 * What is in a folder, its lowest parts in the last row: each may import itself and the rows below its own, and nothing of its
 * own row.
 */
const FOLDERS = {
  'libs/storage/src': [['bulk', 'drain', 'backends', 'usage'], ['object', 'block'], ['shared']],
  'libs/storage/src/object': [
    ['object.module'],
    ['object-storage-service', 'object-operations', 'object-drift'],
    ['accesses'],
    ['buckets'],
    ['rights'],
    ['object-storage', 'object-dependencies', 'endpoints', 'places'],
    ['endpoint'],
  ],
  'libs/storage/src/block': [
    ['block.module'],
    ['block-storage-service', 'block-operations', 'block-background'],
    ['drift', 'schedules', 'groups', 'sessions', 'related-objects'],
    ['publications', 'snapshots'],
    ['volumes'],
    ['hosts', 'export-leases'],
    ['pools', 'protection', 'block-dependencies'],
    ['block-storage'],
  ],
  'libs/operations/src': [
    ['workers', 'administration'],
    ['running'],
    ['definitions', 'leases'],
    ['accepting'],
    ['queue'],
    ['periodic', 'operation'],
  ],
  'libs/tenancy/src': [
    ['tenancy.module'],
    ['oidc'],
    ['logins', 'tokens', 'quotas', 'setup', 'clusters'],
    ['tenants', 'users', 'endpoints'],
    ['factors'],
    ['credentials', 'audit-log', 'idempotency-keys', 'names'],
  ],
  'libs/platform/src': [
    ['dump'],
    ['process'],
    ['health'],
    ['metrics', 'schema'],
    ['database', 'migrations', 'tracing', 'crypto', 'connections'],
    ['config', 'logging', 'package-root', 'make-folders', 'lease-signal', 'errors', 'uuid', 'counted'],
  ],
  'libs/alerts/src': [
    ['gateway-watch', 'alerts.module'],
    ['alert-watch'],
    ['evaluation', 'sender'],
    ['alert-log', 'receivers', 'silences'],
    ['deliver/', 'findings', 'tell', 'appliance-tenant'],
    ['messages'],
    ['rules'],
  ],
  'libs/admin/src': [
    ['admin.module'],
    ['resources/', 'operations', 'tenants'],
    ['requests'],
    ['openapi', 'events'],
    ['admin-keys'],
    ['first-run'],
    ['problems', 'overview'],
    ['contract'],
  ],
  'libs/backends/src': [
    ['registry', 'kind-forms', 'object-store-table'],
    ['rbd'],
    ['reflink', 'metered'],
    ['azure', 'garage', 'gcs', 'rgw', 'tgt', 'metered-extents', 'block-store'],
    ['s3', 'block-backend', 'no-exporter', 'range-builder'],
    ['object-backend', 'exporter', 'extent-source', 'cluster-exports'],
    ['registration', 'image-ref', 'image-share', 'lease-demand', 'host-fence', 'in-flight', 'lane', 'linux'],
  ],
  'apps/cli/src': [
    ['main'],
    ['commands'],
    ['upgrade'],
    ['doctor', 'state-backup', 'verbs'],
    ['backend-states', 'import', 'operator', 'testing'],
    ['backup', 'demo', 'supervisor'],
    ['chart', 'csp'],
    ['api', 'command-line', 'doors', 'parts'],
    ['credentials', 'state', 'tgt-processes'],
    ['ports'],
    ['home'],
    ['database', 'environment', 'human-bytes', 'processes', 'read-bytes', 'table', 'version'],
    ['json-in'],
  ],
};

function oneWay(folder, rows) {
  const inFolder = part => `^${folder}/${part}${/^[\w-]+$/.test(part) ? '(/|[.])' : ''}`;
  return [
    {
      name: 'no row',
      comment: 'Give it a row in FOLDERS.',
      from: { path: `^${folder}/`, pathNot: [TESTS, ...rows.flat().map(inFolder)] },
      to: {},
    },
    ...rows.flatMap((row, at) =>
      row.map(part => ({
        name: 'one way',
        comment: 'It may import what is below it in FOLDERS.',
        from: { path: inFolder(part), pathNot: TESTS },
        to: { path: `^${folder}/`, pathNot: [part, ...rows.slice(at + 1).flat()].map(inFolder) },
      })),
    ),
  ];
}

const PRODUCT = { path: '^(libs|apps)/', pathNot: TESTS };
const VALUES = { dependencyTypesNot: ['type-only', 'type-import'] };

const forbidden = [
  ...Object.entries(ROOMS).map(([room, others]) => ({
    name: room,
    comment: `It may import of other rooms: ${others.join(', ') || 'nothing'}.`,
    from: { path: `^${room}/`, pathNot: TESTS },
    to: { path: '^(libs|apps)/', pathNot: [room, ...others].map(other => `^${other}`) },
  })),
  {
    name: 'a room without a row',
    comment: 'Say in ROOMS what it may import.',
    from: { path: '^(libs|apps)/', pathNot: [TESTS, ...Object.keys(ROOMS).map(room => `^${room}/`)] },
    to: {},
  },
  ...Object.entries(FOLDERS).flatMap(([folder, rows]) => oneWay(folder, rows)),
  ...PACKAGES.map(([packages, users, comment]) => ({
    name: `packages: ${packages}`,
    comment,
    from: { path: '^(libs|apps)/', pathNot: [TESTS, ...users.map(user => `^${user}`)] },
    to: { path: `node_modules/(${packages})(/|$)` },
  })),
  {
    name: 'typeorm',
    comment: 'Only libs/platform creates a DataSource: use Database.withTenant.',
    from: { ...PRODUCT, path: '^(libs/(?!platform/)|apps/)' },
    to: { path: 'node_modules/typeorm/', ...VALUES },
  },
  {
    name: 'environment',
    comment: 'Only libs/platform reads the environment: use loadConfig.',
    from: PRODUCT,
    to: { dependencyTypes: ['core'], path: '^process$' },
  },
  {
    name: 'createRequire',
    comment: 'What is loaded by createRequire, no rule sees: import it, or add the file to LOADED_LATE.',
    from: {
      path: '^(libs|apps)/',
      pathNot: [TESTS, ...LOADED_LATE.map(file => `^${file}`)],
    },
    to: { dependencyTypes: ['core'], path: '^module$' },
  },
  {
    name: 'browser',
    comment: 'The dashboard runs in a browser.',
    from: { path: '^apps/dashboard/', pathNot: TESTS },
    to: { dependencyTypes: ['core'] },
  },
  {
    name: 'development only',
    comment: 'It is not installed where Trivet runs.',
    from: { path: '^(libs|apps/(?!dashboard/))', pathNot: TESTS },
    to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only', 'type-import', 'npm'] },
  },
  {
    name: 'tests',
    comment: 'The product does not contain its tests.',
    from: PRODUCT,
    to: { path: TESTS },
  },
  {
    name: 'subpath imports',
    comment: 'Other rooms are reached by their subpath import, e.g. #platform/errors.',
    from: { ...PRODUCT, path: '^((libs|apps)/[^/]+)/' },
    to: { path: '^libs/', pathNot: '^$1/', dependencyTypesNot: ['aliased-subpath-import'] },
  },
  { name: 'circle', comment: 'Imports run one way, those of types too.', from: {}, to: { circular: true } },
  { name: 'unknown', comment: 'What cannot be found, no rule can judge.', from: {}, to: { couldNotResolve: true } },
].map(rule => ({ ...rule, severity: 'error' }));

export default {
  forbidden,
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    detectProcessBuiltinModuleCalls: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^dist/' },
    enhancedResolveOptions: { conditionNames: ['types', 'import', 'node', 'default'], exportsFields: ['exports'] },
  },
};
