import { Checkbox, Stack, TextInput } from '@mantine/core';
import { useNavigate } from 'react-router';
import type { TenantReply } from '#admin/contract/tenants';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { To } from '../parts/links';
import { Facts, Loaded, Page, Section } from '../parts/page';
import { QuotaSection } from '../parts/quotas';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';

const PATH = '/tenants/{tenant}';

export function TenantPage() {
  const tenant = useTenant();
  const may = useMay();
  const read = useRead(PATH, { params: { tenant } });
  const data = read.data?.data;
  return (
    <Page
      title={`Tenant ${tenant}`}
      actions={
        data && may('admin', 'appliance') && tenant !== 'appliance' ? (
          <Actions tenant={data} etag={read.data?.etag ?? null} />
        ) : undefined
      }
    >
      <Loaded read={{ ...read, data }}>
        {found => (
          <Stack gap="md">
            {found.state !== 'active' && (
              <div className="notice notice-warn" role="note">
                <p className="notice-title">
                  {found.state === 'suspended' ? 'It is suspended' : 'It is being emptied'}
                </p>
                {found.state === 'suspended'
                  ? 'All its doors are shut and its streams have ended. What it stores is kept.'
                  : 'All its doors are shut; what it has is deleted, then the tenant itself.'}
              </div>
            )}
            <Section title="About">
              <Facts
                facts={[
                  ['State', <StateBadge key="state" state={found.state} />],
                  ['Shown as', found.displayName],
                  ['Made', <Ago key="made" at={found.createdAt} />],
                  ['Changed', <Ago key="changed" at={found.updatedAt} />],
                  [
                    'Under way',
                    <To key="operations" to={`/operations?tenant=${tenant}&state=pending,running`}>
                      Operations
                    </To>,
                  ],
                  [
                    'History',
                    <To key="audit" to={`/audit?tenant=${tenant}`}>
                      Audit log
                    </To>,
                  ],
                ]}
              />
            </Section>
            <QuotaSection tenant={tenant} />
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}

function Actions({ tenant: { name, displayName, state }, etag }: { tenant: TenantReply; etag: string | null }) {
  const navigate = useNavigate();
  const params = { tenant: name };
  const change = async (body: { displayName?: string; state?: 'active' | 'suspended' }): Promise<undefined> => {
    await call('PATCH', PATH, { params, body }, { etag });
    return undefined;
  };
  return (
    <>
      <Act
        label="Rename"
        title={`Rename ${name}`}
        verb="Save"
        explain="Only how it is shown; its name stays."
        done="The tenant was renamed"
        run={form => change({ displayName: textOf(form, 'displayName') ?? '' })}
      >
        <TextInput name="displayName" label="Shown as" defaultValue={displayName} maxLength={200} autoComplete="off" />
      </Act>
      {state === 'active' && (
        <Act
          danger
          label="Suspend"
          title={`Suspend tenant ${name}`}
          explain="All its doors shut at once and its streams end. Operations under way end; what it stores is kept. Hosts that have volumes attached go on reading and writing."
          confirmName={name}
          done={`Tenant ${name} is suspended`}
          run={() => change({ state: 'suspended' })}
        />
      )}
      {state === 'suspended' && (
        <Act
          primary
          label="Resume"
          title={`Resume tenant ${name}`}
          explain="Its doors open again."
          done={`Tenant ${name} is active`}
          run={() => change({ state: 'active' })}
        />
      )}
      {state !== 'draining' && (
        <Act
          danger
          label="Delete"
          title={`Delete tenant ${name}`}
          explain="Only a tenant that has nothing left; its audit log stays."
          confirmName={name}
          done={`Tenant ${name} is being deleted`}
          run={async form => {
            const query = form.get('drain') === null ? {} : ({ drain: 'true', confirm: name } as const);
            await call('DELETE', PATH, { params, query }, { etag });
            void navigate('/tenants');
            return undefined;
          }}
        >
          <Checkbox
            name="drain"
            label="Delete all that it has first: accesses, buckets with their objects, volumes, snapshots, hosts"
          />
        </Act>
      )}
    </>
  );
}
