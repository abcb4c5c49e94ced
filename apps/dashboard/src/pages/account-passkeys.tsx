import { PasswordInput, Stack, TextInput } from '@mantine/core';
import { call } from '../api/client';
import { addPasskey } from '../api/passkey';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { DataTable } from '../parts/data-table';
import { Empty, Loaded, Section } from '../parts/page';

/** Logins without a password: each device's own, added and removed here. */
export function OwnPasskeys() {
  const read = useRead('/session/factors', {});
  const host = useRead('/session/passkey', {}).data?.data.host;
  const asksCode = read.data?.data.totp !== null;
  return (
    <Section
      title="Passkeys"
      actions={
        host && (
          <Act
            label="Add a passkey"
            title="Add a passkey"
            verb="Go on"
            explain={`Your device then asks you to confirm, by its lock. It logs you in at ${host} without password and code.`}
            done="The passkey was added"
            run={async form => {
              await addPasskey(textOf(form, 'name') ?? '', stepUpOf(form));
              return undefined;
            }}
          >
            <TextInput
              name="name"
              label="Name"
              description="Such as the device"
              required
              maxLength={64}
              data-autofocus
            />
            <StepUp asksCode={asksCode} />
          </Act>
        )
      }
    >
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ passkeys }) => (
          <DataTable
            label="Passkeys"
            rows={passkeys}
            keyOf={({ id }) => id}
            empty={
              <Empty
                what={
                  host === null
                    ? 'There are none here: whoever runs the appliance sets TRIVET_PUBLIC_URL to an https address with a name.'
                    : 'You have no passkey.'
                }
              />
            }
            columns={[
              { head: 'Name', cell: ({ name }) => name },
              { head: 'Added', cell: ({ createdAt }) => <Ago at={createdAt} /> },
              { head: 'Last used', cell: ({ lastUsedAt }) => (lastUsedAt ? <Ago at={lastUsedAt} /> : 'never') },
              {
                head: 'Actions',
                cell: ({ id, name }) => (
                  <Act
                    small
                    label="Remove"
                    title={`Remove the passkey ${name}`}
                    explain="It opens nothing here from then on, and your other logins by passkeys end; on the device it stays until you delete it there."
                    done={`The passkey ${name} was removed`}
                    run={async form => {
                      const body = stepUpOf(form);
                      await call('POST', '/session/passkeys/{passkey}/remove', { params: { passkey: id }, body });
                      return undefined;
                    }}
                  >
                    <StepUp asksCode={asksCode} />
                  </Act>
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}

const stepUpOf = (form: FormData) => ({ password: String(form.get('until-now')), code: textOf(form, 'code') });

const StepUp = ({ asksCode }: { asksCode: boolean }) => (
  <Stack gap="sm">
    <PasswordInput
      name="until-now"
      label="Your password"
      required
      autoComplete="current-password"
      visibilityToggleButtonProps={{ 'aria-label': 'Show your password' }}
    />
    {asksCode && (
      <TextInput
        name="code"
        label="Code"
        description="Six digits of the app, or a recovery code"
        required
        minLength={6}
        maxLength={40}
        autoComplete="one-time-code"
      />
    )}
  </Stack>
);
