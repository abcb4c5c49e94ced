import { Group, NativeSelect, NumberInput, TextInput } from '@mantine/core';
import type { PolicyReply } from '#admin/contract/protection';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { InputError } from '../api/problem';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { DataTable } from '../parts/data-table';
import { Empty, Loaded, Page } from '../parts/page';
import { useTenant } from '../shell/tenant';

const PATH = '/tenants/{tenant}/performance-policies/{policy}';

export function PoliciesPage() {
  const tenant = useTenant();
  const may = useMay();
  const list = useRead('/tenants/{tenant}/performance-policies', { params: { tenant } });
  return (
    <Page title="Performance policies" actions={may('admin') && <NewPolicy tenant={tenant} />}>
      <p className="dimmed">
        What a volume gets where whoever makes it does not say. Volumes that are there stay as they are.
      </p>
      <Loaded read={{ ...list, data: list.data?.data }}>
        {({ items }) => (
          <DataTable
            label="Performance policies"
            rows={items}
            keyOf={({ name }) => name}
            empty={<Empty what="There is no policy." command="trivet policy create" />}
            columns={[
              { head: 'Name', cell: ({ name, shipped }) => `${name}${shipped ? ' (shipped)' : ''}` },
              { head: 'Sets', cell: ({ config }) => <Sets config={config} /> },
              { head: 'Description', cell: ({ description }) => description },
              {
                head: 'Actions',
                cell: policy => may('admin') && !policy.shipped && <Actions tenant={tenant} policy={policy} />,
              },
            ]}
          />
        )}
      </Loaded>
    </Page>
  );
}

const Sets = ({ config }: Pick<PolicyReply, 'config'>) => (
  <ul className="plain-list">
    {Object.entries(config).map(([key, value]) => (
      <li key={key}>{`${key.replaceAll('_', ' ')}: ${value}`}</li>
    ))}
  </ul>
);

const NewPolicy = ({ tenant }: { tenant: string }) => (
  <Act
    label="New policy"
    title="Make a performance policy"
    verb="Make it"
    primary
    done="The policy was made"
    run={async form => {
      const body = { name: textOf(form, 'name') ?? '', ...saidIn(form) };
      await call('POST', '/tenants/{tenant}/performance-policies', { params: { tenant }, body });
      return undefined;
    }}
  >
    <TextInput
      name="name"
      label="Name"
      description="What volumes ask for as performance_policy"
      required
      maxLength={64}
      autoComplete="off"
      data-autofocus
    />
    <Settings />
  </Act>
);

function Actions({ tenant, policy }: { tenant: string; policy: PolicyReply }) {
  const params = { tenant, policy: policy.name };
  return (
    <Group gap="xs">
      <Act
        small
        label="Change"
        title={`Change policy ${policy.name}`}
        explain="For volumes that are made from now on."
        verb="Save"
        done="The policy was changed"
        run={async form => {
          const { data, etag } = await call('GET', PATH, { params });
          if (data.description !== policy.description || !sameSettings(data.config, policy.config))
            throw new InputError('config', 'it was changed meanwhile: close this, and look again');
          await call('PATCH', PATH, { params, body: saidIn(form) }, { etag });
          return undefined;
        }}
      >
        <Settings policy={policy} />
      </Act>
      <Act
        small
        danger
        label="Delete"
        title={`Delete policy ${policy.name}`}
        explain="Volumes that were made with it stay as they are."
        confirmName={policy.name}
        done="The policy was deleted"
        run={async () => {
          await call('DELETE', PATH, { params });
          return undefined;
        }}
      />
    </Group>
  );
}

const UNSAID = { value: '', label: 'does not say' };
const CHOICES = {
  thick: {
    label: 'Space',
    data: [UNSAID, { value: 'true', label: 'reserved' }, { value: 'false', label: 'as it is written' }],
  },
  destroy_on_delete: {
    label: 'When deleted',
    data: [UNSAID, { value: 'true', label: 'gone at once' }, { value: 'false', label: 'into the recycle bin' }],
  },
};
const NUMBERS = { limit_iops: 'Operations a second, at most', limit_mbps: 'Megabytes a second, at most' };
const TEXTS = { pool: 'Pool', folder: 'Folder' };
const KEYS = [...Object.keys(CHOICES), ...Object.keys(NUMBERS), ...Object.keys(TEXTS)];

function Settings({ policy }: { policy?: PolicyReply }) {
  const value = (key: string) => String(policy?.config[key] ?? '');
  return (
    <>
      <TextInput
        name="description"
        label="Description"
        defaultValue={policy?.description}
        maxLength={500}
        autoComplete="off"
      />
      {Object.entries(CHOICES).map(([key, { label, data }]) => (
        <NativeSelect key={key} name={key} label={label} data={data} defaultValue={value(key)} />
      ))}
      {Object.entries(NUMBERS).map(([key, label]) => (
        <NumberInput
          key={key}
          name={key}
          label={label}
          description="Empty: it does not say; -1: no limit"
          min={-1}
          defaultValue={value(key)}
        />
      ))}
      {Object.entries(TEXTS).map(([key, label]) => (
        <TextInput key={key} name={key} label={label} defaultValue={value(key)} maxLength={255} autoComplete="off" />
      ))}
    </>
  );
}

const sameSettings = (a: PolicyReply['config'], b: PolicyReply['config']): boolean =>
  Object.keys({ ...a, ...b }).every(key => a[key] === b[key]);

function saidIn(form: FormData) {
  const said = KEYS.flatMap(key => {
    const text = textOf(form, key);
    return text === undefined ? [] : [[key, text] as const];
  });
  return { description: textOf(form, 'description') ?? '', config: Object.fromEntries(said) };
}
