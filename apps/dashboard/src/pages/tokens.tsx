import { Group, NativeSelect, NumberInput, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { Role } from '#admin/contract/route';
import { call } from '../api/client';
import { useMay, useMe } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { Copy } from '../parts/copy';
import { laterDialog } from '../parts/later-dialog';
import { COMMON, ListPage } from '../parts/list-page';
import { Empty } from '../parts/page';
import { useTenant } from '../shell/tenant';
import { ROLE_CHOICE } from './users';

/** Its script is here by then: that of the dialog which rotated it. */
const Rotated = laterDialog(async () => (await import('../parts/act-dialog')).ShownDialog);

const fields = [{ name: 'user', label: 'User' }];

export function TokensPage() {
  const tenant = useTenant();
  const me = useMe();
  const may = useMay();
  const isOwn = (user: string): boolean => me.username === `${user}@${tenant}` || me.username === user;
  // The row of a rotated token changes, or goes: its secret is shown beside the list.
  const [made, setMade] = useState<Made>();
  return (
    <>
      <ListPage
        title="API tokens"
        path="/tenants/{tenant}/tokens"
        params={{ tenant }}
        fields={fields}
        intro="For automation: sent as Authorization: Bearer. A token is shown once, when it is made."
        actions={(may('admin') || me.tenant === tenant) && <NewToken tenant={tenant} />}
        empty={<Empty what="There is no API token." command="trivet token create" />}
        columns={[
          { head: 'Name', cell: ({ name }) => name },
          { head: 'User', cell: ({ user }) => user },
          { head: 'Role', cell: ({ role }) => role },
          { head: 'Last used', cell: ({ lastUsedAt }) => (lastUsedAt ? <Ago at={lastUsedAt} /> : 'never') },
          {
            head: 'Expires',
            cell: ({ expiresAt }) => (expiresAt ? <Ago at={expiresAt} /> : 'when it is revoked'),
          },
          COMMON.made,
          {
            head: 'Actions',
            cell: ({ id, name, user }) =>
              (may('admin') || isOwn(user)) && (
                <Group gap="xs">
                  {!name.endsWith(' (former)') && (
                    <RotateToken tenant={tenant} id={id} name={name} user={user} onMade={setMade} />
                  )}
                  <Act
                    small
                    danger
                    label="Revoke"
                    title={`Revoke token ${name} of ${user}`}
                    explain="Whoever uses it is refused from then on."
                    confirmName={name}
                    done={`Token ${name} was revoked`}
                    run={async () => {
                      await call('DELETE', '/tenants/{tenant}/tokens/{token}', { params: { tenant, token: id } });
                      return undefined;
                    }}
                  />
                </Group>
              ),
          },
        ]}
      />
      <Rotated opened={made !== undefined} close={() => setMade(undefined)} title="The token was rotated">
        {made && <Shown {...made} />}
      </Rotated>
    </>
  );
}

interface Made {
  name: string;
  token: string;
}

interface TokenProps {
  tenant: string;
  id: string;
  name: string;
  user: string;
  onMade: (made: Made) => void;
}

const RotateToken = ({ tenant, id, name, user, onMade }: TokenProps) => (
  <Act
    small
    label="Rotate"
    title={`Rotate token ${name} of ${user}`}
    explain="Makes another token of its name and rights. The former works beside it until the grace is over."
    verb="Rotate it"
    done="The token was rotated"
    run={async form => {
      const body = { graceSeconds: Math.round(Number(textOf(form, 'hours') ?? 0) * 3_600) };
      const params = { tenant, token: id };
      const { data } = await call('POST', '/tenants/{tenant}/tokens/{token}/rotate', { params, body });
      onMade(data);
      return undefined;
    }}
  >
    <NumberInput
      name="hours"
      label="Grace, hours"
      description="So long the former works; 0: it ends at once"
      min={0}
      max={8_760}
      defaultValue={24}
      required
    />
  </Act>
);

function NewToken({ tenant }: { tenant: string }) {
  return (
    <Act
      label="New token"
      title="Make an API token"
      verb="Make it"
      primary
      done="The token was made"
      run={async form => {
        const days = textOf(form, 'days');
        const body = {
          name: textOf(form, 'name') ?? '',
          user: textOf(form, 'user'),
          role: textOf(form, 'role') as Role,
          ...(days ? { expiresInDays: Number(days) } : {}),
        };
        const { data } = await call('POST', '/tenants/{tenant}/tokens', { params: { tenant }, body });
        return <Shown token={data.token} name={data.name} />;
      }}
    >
      <NewTokenFields tenant={tenant} />
    </Act>
  );
}

const Shown = ({ token, name }: Made) => (
  <Stack gap="xs">
    <div className="notice notice-warn" role="note">
      <p className="notice-title">This is the only time that {name} is shown</p>
      Put it where your program reads it. Whoever has it may do what it may.
    </div>
    <Copy text={token} label="the token" />
  </Stack>
);

function NewTokenFields({ tenant }: { tenant: string }) {
  const may = useMay();
  const users = useRead('/tenants/{tenant}/users', { params: { tenant }, query: { limit: 200 } });
  return (
    <>
      <TextInput
        name="name"
        label="Name"
        description="What it is for"
        required
        maxLength={64}
        autoComplete="off"
        data-autofocus
      />
      {may('admin') && (
        <NativeSelect name="user" label="User" data={users.data?.data.items.map(({ name }) => name) ?? []} required />
      )}
      <NativeSelect name="role" label="Role" description="At most that of its user" data={ROLE_CHOICE} />
      <NumberInput
        name="days"
        label="Days"
        description="Empty: until it is revoked"
        min={1}
        max={3650}
        defaultValue={90}
      />
    </>
  );
}
