import type { FirstRunReply } from '#admin/contract/first-run';
import type { OverviewReply } from '#admin/contract/overview';

type Step = FirstRunReply['steps'][number];

export interface Facts {
  dismissed: boolean;
  /** Whose login a driver has used. */
  driver: string | null;
  /** One whose connector was heard of. */
  cluster: string | null;
  /** A bucket was made through a socket of COSI. */
  sidecar: boolean;
  /** The operator csp, else one who has logged in as drivers do: nobody's own login goes into a cluster. */
  user: string | null;
  block: string | null;
  endpoint: { name: string; driverName: string | null } | null;
  volumes: string;
  buckets: string;
}

export interface Tenant {
  id: string;
  name: string;
  state: string;
}

type Backends = OverviewReply['backends'];

/** In their order; each is done or open by what is there. */
export const stepsOf = (tenant: Tenant, backends: Backends, facts: Facts): Step[] => [
  tenantStep(tenant),
  backendStep(tenant, backends),
  testStep(tenant, backends),
  driverStep(tenant, facts),
  firstStep(tenant, facts),
];

const tenantStep = ({ name, state }: Tenant): Step => ({
  key: 'tenant',
  title: 'A tenant, whose things are its own',
  done: state === 'active',
  found: state === 'active' ? name : `${name} is ${state}`,
  todo: 'Resume it, or make another one: what it stores is seen by its users alone.',
  link: '/tenants',
  command: `trivet tenant resume ${name}`,
});

const backendStep = ({ name }: Tenant, backends: Backends): Step => ({
  key: 'backend',
  title: 'A backend, where its volumes or buckets lie',
  done: backends.length > 0,
  found: backends.length === 0 ? 'none' : listed(backends.map(backend => `${backend.name} (${backend.kind})`)),
  todo: 'Register one of its own, or share one of the appliance with it.',
  link: `/tenants/${name}/backends`,
  command: `trivet backend create NAME --kind KIND --tenant ${name}`,
});

function testStep({ name }: Tenant, backends: Backends): Step {
  const up = backends.filter(({ health }) => health === 'up');
  const [first] = backends;
  return {
    key: 'test',
    title: 'The backend answers',
    done: up.length > 0,
    found:
      [...up, ...backends].slice(0, 1).map(backend => `${backend.name}: ${backend.detail}`)[0] ?? 'nothing to test yet',
    todo: 'Test it: the answer says what does not fit. Pools of files need a worker on their host.',
    link: first ? `/tenants/${name}/backends/${encodeURIComponent(first.name)}` : `/tenants/${name}/backends`,
    command: `trivet backend test ${first?.name ?? 'NAME'} --tenant ${name}`,
  };
}

function driverStep({ name }: Tenant, { driver, cluster, sidecar }: Facts): Step {
  const found = [
    driver !== null && `the HPE CSI driver has logged in as ${driver}`,
    cluster !== null && `the connector of cluster ${cluster} was heard of`,
    sidecar && 'a COSI sidecar has made a bucket',
  ].filter(each => each !== false);
  return {
    key: 'driver',
    title: 'A driver or sidecar in a cluster',
    done: found.length > 0,
    found: found.length === 0 ? 'none has come yet' : listed(found),
    todo: 'Copy what is below, fill in what stands in angle brackets, and apply it in the cluster.',
    link: `/tenants/${name}/clusters`,
    command: `trivet first-run manifest hpe-csi --tenant ${name}`,
  };
}

function firstStep({ name }: Tenant, { volumes, buckets }: Facts): Step {
  const found = [counted(volumes, 'volume'), counted(buckets, 'bucket')].filter(each => each !== undefined);
  return {
    key: 'first',
    title: 'The first volume or bucket',
    done: found.length > 0,
    found: found.length === 0 ? 'none' : listed(found),
    todo: 'A claim in the cluster makes one, and so do people.',
    link: `/tenants/${name}/volumes`,
    command: `trivet volume create first --size 1GiB --tenant ${name}`,
  };
}

const listed = (things: readonly string[]): string =>
  things.length > 3 ? `${things.slice(0, 3).join(', ')} and ${things.length - 3} more` : things.join(', ');

const counted = (count: string, what: string): string | undefined =>
  count === '0' ? undefined : count === '1' ? `1 ${what}` : `${count} ${what}s`;
