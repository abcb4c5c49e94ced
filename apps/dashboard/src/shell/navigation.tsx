import { NavLink } from 'react-router';
import { useMe } from '../api/me';
import { useNavigationTenant } from './tenant';
import { TenantSwitcher } from './tenant-switcher';

type Entry = readonly [label: string, path: string];

const ofTenant: readonly (readonly [group: string, entries: readonly Entry[]])[] = [
  [
    'Block storage',
    [
      ['Volumes', 'volumes'],
      ['Recycle bin', 'recycle-bin'],
      ['Snapshots', 'snapshots'],
      ['Hosts', 'hosts'],
      ['Publications', 'publications'],
      ['Protection templates', 'protection-templates'],
      ['Performance policies', 'performance-policies'],
      ['Snapshot sessions', 'snapshot-sessions'],
    ],
  ],
  [
    'Object storage',
    [
      ['Buckets', 'buckets'],
      ['Accesses', 'accesses'],
    ],
  ],
  [
    'Set-up',
    [
      ['Backends', 'backends'],
      ['Endpoints', 'endpoints'],
      ['Clusters', 'clusters'],
      ['Users', 'users'],
      ['API tokens', 'tokens'],
    ],
  ],
];

const ofAll: readonly Entry[] = [
  ['All volumes', '/all/volumes'],
  ['All snapshots', '/all/snapshots'],
  ['All hosts', '/all/hosts'],
  ['All buckets', '/all/buckets'],
];

export function Navigation({ onGo }: { onGo: () => void }) {
  const me = useMe();
  const tenant = useNavigationTenant();
  const above: Entry[] = [
    ['Overview', '/'],
    ['Operations', '/operations'],
    ...(me.appliance
      ? ([
          ['Tenants', '/tenants'],
          ['Workers and queues', '/workers'],
          ['Use of all tenants', '/usage'],
          ['Alerts', '/alerts'],
          ['Receivers', '/receivers'],
        ] as const)
      : []),
    ['Audit log', '/audit'],
  ];
  return (
    <nav aria-label="Main">
      <Links entries={above} onGo={onGo} />
      {me.appliance && (
        <>
          <p className="nav-group">All tenants</p>
          <Links entries={ofAll} onGo={onGo} />
        </>
      )}
      {me.appliance ? <TenantSwitcher tenant={tenant} /> : <p className="nav-group">Tenant {tenant}</p>}
      <Links
        entries={[
          ['Tenant and quotas', `/tenants/${tenant}`],
          ['Use and forecast', `/tenants/${tenant}/usage`],
        ]}
        onGo={onGo}
      />
      {ofTenant.map(([group, entries]) => (
        <div key={group}>
          <p className="nav-group">{group}</p>
          <Links entries={entries.map(([label, path]) => [label, `/tenants/${tenant}/${path}`])} onGo={onGo} />
        </div>
      ))}
    </nav>
  );
}

const Links = ({ entries, onGo }: { entries: readonly Entry[]; onGo: () => void }) => (
  <ul className="nav-list">
    {entries.map(([label, path]) => (
      <li key={path}>
        <NavLink className="nav-link" to={path} onClick={onGo} end={path === '/' || /^\/tenants(\/[^/]+)?$/.test(path)}>
          {label}
        </NavLink>
      </li>
    ))}
  </ul>
);
