import { PasswordInput, Stack } from '@mantine/core';
import { call } from '../api/client';
import { useMe } from '../api/me';
import { Act } from '../parts/act';
import { Ago } from '../parts/ago';
import { To } from '../parts/links';
import { Facts, Page, Section } from '../parts/page';
import { OwnFactors } from './account-factors';
import { OwnLogins } from './account-logins';
import { OwnPasskeys } from './account-passkeys';
import { NewPassword } from './users';

export function AccountPage() {
  const me = useMe();
  return (
    <Page title="Account">
      <Stack gap="md">
        <Section title="About">
          <Facts
            facts={[
              ['User', me.username],
              ['Tenant', me.tenant],
              ['Role', me.role],
              ['Administers', me.appliance ? 'the whole appliance' : 'this tenant'],
              ['This login ends', <Ago key="ends" at={me.expiresAt} />],
              [
                'API tokens',
                <To key="tokens" to={`/tenants/${me.tenant}/tokens?user=${me.username.split('@')[0]}`}>
                  Show them
                </To>,
              ],
            ]}
          />
        </Section>
        <Section title="Password">
          <Act
            label="Change the password"
            title="Change your password"
            verb="Change it"
            explain="All your other logins end; your API tokens stay."
            done="Your password was changed"
            run={async form => {
              await call('POST', '/session/password', {
                body: { password: String(form.get('until-now')), newPassword: String(form.get('password')) },
              });
              return undefined;
            }}
          >
            <PasswordInput
              name="until-now"
              label="Password until now"
              required
              autoComplete="current-password"
              visibilityToggleButtonProps={{ 'aria-label': 'Show the password until now' }}
              data-autofocus
            />
            <NewPassword required />
          </Act>
        </Section>
        <OwnFactors />
        <OwnPasskeys />
        <OwnLogins />
      </Stack>
    </Page>
  );
}
