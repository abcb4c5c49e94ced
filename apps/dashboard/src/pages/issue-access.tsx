import { NativeSelect, Stack, TextInput } from '@mantine/core';
import type { AccessKeyReply } from '#admin/contract/buckets';
import { call } from '../api/client';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Copy } from '../parts/copy';
import { Facts } from '../parts/page';

const MODES = [
  { value: 'read_only', label: 'read only' },
  { value: 'read_write', label: 'read and write' },
  { value: 'write_only', label: 'write only' },
];
type Mode = 'read_only' | 'read_write' | 'write_only';

/** A key of its own for a person or a program. `bucket`: to this one; else one is chosen. */
export const IssueAccess = ({ tenant, bucket }: { tenant: string; bucket?: { id: string; name: string } }) => (
  <Act
    label="Issue an access"
    title={bucket ? `Issue an access to ${bucket.name}` : 'Issue an access'}
    explain="A key of its own for a person or a program that is outside of the clusters."
    verb="Issue it"
    primary
    done="The access is being granted"
    run={async form => {
      const wanted = { bucket: bucket?.id ?? textOf(form, 'bucket') ?? '', mode: textOf(form, 'mode') as Mode };
      const body = { name: textOf(form, 'name') ?? '', buckets: [wanted] };
      const { data } = await call('POST', '/tenants/{tenant}/accesses', { params: { tenant }, body });
      return data.key ? <AccessKey value={data.key} /> : undefined;
    }}
  >
    <TextInput
      name="name"
      label="Name"
      description="What it is for: small letters, digits, - and ."
      required
      maxLength={253}
      autoComplete="off"
      data-autofocus
    />
    {!bucket && <BucketField tenant={tenant} />}
    <NativeSelect name="mode" label="May" data={MODES} />
  </Act>
);

function BucketField({ tenant }: { tenant: string }) {
  const query = { limit: 200, state: 'ready' } as const;
  const buckets = useRead('/tenants/{tenant}/buckets', { params: { tenant }, query });
  const data = buckets.data?.data.items.map(({ id, name, backend }) => ({
    value: id,
    label: `${name}, at ${backend}`,
  }));
  return <NativeSelect name="bucket" label="Bucket" required data={data ?? []} />;
}

/** All that a client is configured by. */
export function AccessKey({ value }: { value: AccessKeyReply }) {
  const secrets = { accessKeyId: 'Access key', secretAccessKey: 'Secret key', token: 'Signature' } as const;
  const facts = Object.entries(secrets).flatMap(([name, label]) => {
    const text = value[name as keyof typeof secrets];
    return text === null
      ? []
      : [[label, <Copy key={name} text={text} label={`the ${label.toLowerCase()}`} />] as const];
  });
  return (
    <Stack gap="xs">
      <div className="notice notice-warn" role="note">
        <p className="notice-title">Whoever has it may do what it may</p>
        Put it where your program reads it. Administrators can have it shown again; the audit log says each time.
      </div>
      <Facts
        facts={[
          ...facts,
          ['Endpoint', value.endpoint],
          ['Region', value.region],
          ['Addressing', value.addressing],
          ...(value.storageAccount === null ? [] : [['Storage account', value.storageAccount] as const]),
          ...(value.project === null ? [] : [['Project', value.project] as const]),
        ]}
      />
    </Stack>
  );
}
