import { Group, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { call } from '../api/client';
import { useRead, useReadAgain } from '../api/read';
import { Act } from '../parts/act';
import { Ago } from '../parts/ago';
import { Copy } from '../parts/copy';
import { laterDialog } from '../parts/later-dialog';
import { Facts, Loaded, Section } from '../parts/page';

/** Its script is here by then: that of the dialog in which the code was proved. */
const Shown = laterDialog(async () => (await import('../parts/act-dialog')).ShownDialog);

/** What a login by password asks for besides it. */
export function OwnFactors() {
  const read = useRead('/session/factors', {});
  const readAgain = useReadAgain();
  // The button that began it goes when it is proved: the codes are shown beside it.
  const [codes, setCodes] = useState<string[]>();
  const proved = (made: string[]): void => {
    setCodes(made);
    void readAgain('/session/');
  };
  return (
    <Section title="Second factor">
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ totp, recoveryCodes }) => (
          <Stack gap="sm">
            <Facts
              facts={[
                ['A login by password', totp ? 'asks for a code of your app' : 'asks for nothing else'],
                totp !== null && ['Since', <Ago key="since" at={totp.since} />],
                totp !== null && ['Recovery codes left', recoveryCodes],
              ]}
            />
            <Group gap="xs">
              {totp ? (
                <>
                  <RenewCodes />
                  <RemoveTotp />
                </>
              ) : (
                <AddTotp onProved={proved} />
              )}
            </Group>
          </Stack>
        )}
      </Loaded>
      <Shown opened={codes !== undefined} close={() => setCodes(undefined)} title="From now on a code is asked for">
        {codes && <RecoveryCodes codes={codes} />}
      </Shown>
    </Section>
  );
}

const AddTotp = ({ onProved }: { onProved: (codes: string[]) => void }) => (
  <Act
    label="Add an authenticator app"
    title="Add an authenticator app"
    verb="Go on"
    explain="Who logs in as you then needs your phone, too. API tokens go on unchanged; all your other logins end when the first code is right."
    done="Now read the QR code with the app"
    run={async form => {
      const [{ data }, { EnrolTotp }] = await Promise.all([
        call('POST', '/session/factors/totp', { body: { password: String(form.get('until-now')) } }),
        import('./enrol-totp'),
      ]);
      return <EnrolTotp {...data} onProved={onProved} />;
    }}
  >
    <OwnPassword />
  </Act>
);

const RenewCodes = () => (
  <Act
    label="Other recovery codes"
    title="Make other recovery codes"
    verb="Make them"
    explain="Those before are refused from then on."
    done="The recovery codes are others now"
    run={async form => {
      const { data } = await call('POST', '/session/factors/recovery-codes', { body: stepUpOf(form) });
      return <RecoveryCodes codes={data.recoveryCodes} />;
    }}
  >
    <StepUp />
  </Act>
);

const RemoveTotp = () => (
  <Act
    label="Remove it"
    title="Remove the authenticator app"
    verb="Remove it"
    explain="Your password alone logs you in again; the recovery codes go with it."
    done="A login by password asks for nothing else now"
    run={async form => {
      await call('POST', '/session/factors/totp/remove', { body: stepUpOf(form) });
      return undefined;
    }}
  >
    <StepUp />
  </Act>
);

const stepUpOf = (form: FormData) => ({
  password: String(form.get('until-now')),
  code: String(form.get('code')).trim(),
});

const StepUp = () => (
  <>
    <OwnPassword />
    <TextInput
      name="code"
      label="Code"
      description="Six digits of the app, or a recovery code"
      required
      minLength={6}
      maxLength={40}
      autoComplete="one-time-code"
    />
  </>
);

const OwnPassword = () => (
  <PasswordInput
    name="until-now"
    label="Your password"
    required
    autoComplete="current-password"
    visibilityToggleButtonProps={{ 'aria-label': 'Show your password' }}
    data-autofocus
  />
);

const RecoveryCodes = ({ codes }: { codes: readonly string[] }) => (
  <Stack gap="xs">
    <div className="notice notice-warn" role="note">
      <p className="notice-title">This is the only time that these codes are shown</p>
      Each logs you in once when the app is lost. Keep them where the phone is not.
    </div>
    <ul className="recovery-codes">
      {codes.map(code => (
        <li key={code}>
          <code>{code}</code>
        </li>
      ))}
    </ul>
    <Copy text={codes.join(' ')} label="the recovery codes" short />
  </Stack>
);
