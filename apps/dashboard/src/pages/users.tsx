import { NativeSelect, PasswordInput, TextInput } from '@mantine/core';
import type { Role } from '#admin/contract/route';
import { call, callFresh } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { To } from '../parts/links';
import { COMMON, ListPage } from '../parts/list-page';
import { Empty } from '../parts/page';
import { useTenant } from '../shell/tenant';

const PATH = '/tenants/{tenant}/users/{user}';
export const ROLE_CHOICE = [
  { value: 'viewer', label: 'viewer: looks only' },
  { value: 'operator', label: 'operator: makes and repairs' },
  { value: 'admin', label: 'admin: deletes and administers' },
];

export function UsersPage() {
  const tenant = useTenant();
  const may = useMay();
  return (
    <ListPage
      title="Users"
      path="/tenants/{tenant}/users"
      params={{ tenant }}
      intro={
        tenant === 'appliance' && 'Users of the tenant appliance administer the appliance: all tenants, by their role.'
      }
      actions={may('admin') && <NewUser tenant={tenant} />}
      empty={<Empty what="This tenant has no user." command="trivet user create" />}
      columns={[
        { head: 'Name', cell: ({ username }) => username },
        { head: 'Role', cell: ({ role }) => role },
        COMMON.state,
        {
          head: 'API tokens',
          cell: ({ name, tokens }) => <To to={`/tenants/${tenant}/tokens?user=${name}`}>{tokens}</To>,
          number: true,
        },
        COMMON.made,
        {
          head: 'Actions',
          cell: ({ id, name, username, role, state, identity }) =>
            may('admin') && (
              <span className="row-actions">
                <ChangeUser tenant={tenant} id={id} name={name} role={role} subject={identity?.subject ?? ''} />
                <Act
                  small
                  label={state === 'active' ? 'Disable' : 'Enable'}
                  title={`${state === 'active' ? 'Disable' : 'Enable'} ${username}`}
                  explain={
                    state === 'active'
                      ? 'Its logins end at once, and the tokens of its drivers; its API tokens rest.'
                      : 'It may log in again; its API tokens work again.'
                  }
                  done={state === 'active' ? `${name} was disabled` : `${name} was enabled`}
                  run={async () => {
                    const body = { state: state === 'active' ? 'disabled' : 'active' } as const;
                    await callFresh('PATCH', PATH, { id }, { params: { tenant, user: name }, body });
                    return undefined;
                  }}
                />
                <Act
                  small
                  label="End logins"
                  title={`End the logins of ${username}`}
                  explain="Whoever is logged in at the page as this user logs in again; API tokens and drivers go on."
                  done={`The logins of ${name} have ended`}
                  run={async () => {
                    await call('DELETE', '/tenants/{tenant}/users/{user}/logins', { params: { tenant, user: name } });
                    return undefined;
                  }}
                />
                <Act
                  small
                  label="Reset factors"
                  title={`Take the second factors of ${username} away`}
                  explain="For somebody who has lost app and recovery codes: its logins end, and its password alone counts again. Make sure who asks."
                  done={`${name} has no second factor now`}
                  run={async () => {
                    await call('DELETE', '/tenants/{tenant}/users/{user}/factors', { params: { tenant, user: name } });
                    return undefined;
                  }}
                />
                <Act
                  small
                  danger
                  label="Delete"
                  title={`Delete user ${username}`}
                  explain="Its logins and tokens end with it. What it did stays in the audit log."
                  confirmName={name}
                  done={`${name} was deleted`}
                  run={async () => {
                    await callFresh('DELETE', PATH, { id }, { params: { tenant, user: name } });
                    return undefined;
                  }}
                />
              </span>
            ),
        },
      ]}
    />
  );
}

const NewUser = ({ tenant }: { tenant: string }) => (
  <Act
    label="New user"
    title="Make a user"
    verb="Make it"
    primary
    done="The user was made"
    run={async form => {
      const body = {
        name: textOf(form, 'name') ?? '',
        role: textOf(form, 'role') as Role,
        password: String(form.get('password')),
      };
      await call('POST', '/tenants/{tenant}/users', { params: { tenant }, body });
      return undefined;
    }}
  >
    <TextInput
      name="name"
      label="Name"
      description={`Logs in as name@${tenant}`}
      required
      pattern="[a-z0-9][a-z0-9._\-]{0,63}"
      autoComplete="off"
      data-autofocus
    />
    <NativeSelect name="role" label="Role" data={ROLE_CHOICE} />
    <NewPassword required />
  </Act>
);

export const NewPassword = ({ required, name = 'password' }: { required?: boolean; name?: string }) => (
  <PasswordInput
    name={name}
    label={required ? 'Password' : 'Another password'}
    description={required ? 'Eight characters or more' : 'Eight characters or more; empty: it stays'}
    minLength={8}
    maxLength={256}
    required={required}
    autoComplete="new-password"
    visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
  />
);

interface ChangeProps {
  tenant: string;
  id: string;
  name: string;
  role: Role;
  /** At the provider; '': none. */
  subject: string;
}

function ChangeUser({ tenant, id, name, role, subject }: ChangeProps) {
  const may = useMay();
  const links = may('admin', 'appliance');
  const provider = useRead('/session/provider', {}, { enabled: links }).data?.data.name;
  return (
    <Act
      small
      label="Change"
      title={`Change ${name}@${tenant}`}
      verb="Save"
      explain="Another password ends its logins and the tokens of its drivers."
      done={`${name} was changed`}
      run={async form => {
        const password = String(form.get('password') ?? '');
        const wanted = textOf(form, 'role') as Role;
        const linked = form.has('subject') ? String(form.get('subject')).trim() : subject;
        await callFresh(
          'PATCH',
          PATH,
          { id },
          {
            params: { tenant, user: name },
            body: {
              ...(wanted === role ? {} : { role: wanted }),
              ...(password === '' ? {} : { password }),
              ...(linked === subject ? {} : { subject: linked === '' ? null : linked }),
            },
          },
        );
        return undefined;
      }}
    >
      <NativeSelect name="role" label="Role" defaultValue={role} data={ROLE_CHOICE} />
      <NewPassword />
      {links && provider && (
        <TextInput
          name="subject"
          label={`Subject at ${provider}`}
          description={`By this ${provider} knows who logs in as ${name}; the audit log shows it of a refused login. Another one ends its logins`}
          defaultValue={subject}
          maxLength={255}
          autoComplete="off"
        />
      )}
    </Act>
  );
}
