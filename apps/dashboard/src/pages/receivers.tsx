import { Button, Checkbox, NativeSelect, NumberInput, PasswordInput, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { ReceiverReply, TargetBody } from '#admin/contract/alerts';
import { call, callFresh } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf, useFieldErrors } from '../parts/act';
import { Ago } from '../parts/ago';
import { ListPage } from '../parts/list-page';
import { Empty } from '../parts/page';
import { StateBadge } from '../parts/state-badge';

const PATH = '/receivers/{receiver}';
const EVERY_MS = 10_000;
type Kind = TargetBody['kind'];

export function ReceiversPage() {
  const may = useMay();
  const admin = may('admin');
  return (
    <ListPage
      title="Receivers"
      path="/receivers"
      every={EVERY_MS}
      intro="Who is told of alerts."
      actions={admin && <NewReceiver />}
      empty={<Empty what="Nobody is told of alerts." command="trivet receiver create" />}
      columns={[
        { head: 'Name', cell: ({ name }) => name },
        {
          head: 'State',
          cell: ({ enabled, error }) => <StateBadge state={enabled ? (error ? 'failed' : 'ok') : 'disabled'} />,
        },
        { head: 'Where', cell: ({ kind, address }) => `${kind}: ${address}`, wide: true },
        { head: 'Told of', cell: toldOf },
        {
          head: 'Escalates',
          cell: ({ escalation }) => (escalation ? `to ${escalation.to} after ${escalation.afterMinutes} min` : '–'),
        },
        { head: 'Waiting', cell: ({ waiting }) => waiting },
        { head: 'Last taken', cell: ({ lastSentAt }) => (lastSentAt ? <Ago at={lastSentAt} /> : 'never') },
        { head: 'Error', cell: ({ error }) => error ?? '–', wide: true },
        {
          head: 'Actions',
          cell: receiver => (
            <span className="row-actions">
              {may('operator') && <Test name={receiver.name} />}
              {admin && <Change receiver={receiver} />}
              {admin && <Delete receiver={receiver} />}
            </span>
          ),
        },
      ]}
    />
  );
}

const toldOf = ({ onlyEscalated, severity }: ReceiverReply): string =>
  onlyEscalated ? 'what is escalated to it' : severity === 'error' ? 'errors' : 'warnings and errors';

const Test = ({ name }: { name: string }) => (
  <Act
    small
    label="Test"
    title={`Test ${name}`}
    explain="It is told that this is a test."
    done={`The test of ${name} has ended`}
    run={async () => {
      const { data } = await call('POST', '/receivers/{receiver}/test', { params: { receiver: name } });
      return data.state === 'sent' ? (
        <p role="status">{name} took it.</p>
      ) : (
        <div className="notice notice-warn" role="status">
          <p className="notice-title">{name} did not take it</p>
          {data.error}
        </div>
      );
    }}
  />
);

const Delete = ({ receiver: { id, name } }: { receiver: ReceiverReply }) => (
  <Act
    small
    danger
    label="Delete"
    title={`Delete ${name}`}
    explain="It is told no more, and what waits for it goes with it."
    confirmName={name}
    done={`${name} was deleted`}
    run={async () => {
      await callFresh('DELETE', PATH, { id }, { params: { receiver: name } });
      return undefined;
    }}
  />
);

const Change = ({ receiver: { id, name, ...was } }: { receiver: ReceiverReply }) => (
  <Act
    small
    label="Change"
    title={`Change ${name}`}
    verb="Change it"
    done={`${name} was changed`}
    run={async form => {
      const body = { ...settingsIn(form), enabled: form.has('enabled') };
      await callFresh('PATCH', PATH, { id }, { params: { receiver: name }, body });
      return undefined;
    }}
  >
    <Checkbox name="enabled" label="Told of alerts" defaultChecked={was.enabled} data-autofocus />
    <Settings name={name} was={was} />
    <p className="dimmed">
      Another address or key: <code>trivet receiver change {name} --target-file</code>
    </p>
  </Act>
);

const NewReceiver = () => (
  <Act
    label="New receiver"
    title="Have somebody told"
    verb="Make it"
    primary
    explain="It is told of what is open already, too. Where it is, is sealed and not shown again."
    done="The receiver was made"
    run={async form => {
      const body = { name: textOf(form, 'name') ?? '', target: targetIn(form), ...settingsIn(form) };
      await call('POST', '/receivers', { body });
      return undefined;
    }}
  >
    <TextInput name="name" label="Name" required pattern="[a-z0-9][a-z0-9\-]{0,62}" autoComplete="off" data-autofocus />
    <TargetFields />
    <Settings />
  </Act>
);

const KINDS: readonly { value: Kind; label: string }[] = [
  { value: 'webhook', label: 'Webhook, signed' },
  { value: 'slack', label: 'Slack' },
  { value: 'teams', label: 'Microsoft Teams' },
  { value: 'pagerduty', label: 'PagerDuty' },
  { value: 'smtp', label: 'Mail by SMTP' },
];

function TargetFields() {
  const [kind, setKind] = useState<Kind>('webhook');
  const error = useFieldErrors('/target');
  return (
    <>
      <NativeSelect
        name="kind"
        label="Kind"
        data={[...KINDS]}
        value={kind}
        error={error}
        onChange={event => setKind(event.currentTarget.value as Kind)}
      />
      {(kind === 'webhook' || kind === 'slack' || kind === 'teams') && (
        <TextInput
          name="url"
          type="url"
          label="Address"
          description="https"
          required
          maxLength={2000}
          autoComplete="off"
        />
      )}
      {kind === 'webhook' && <SigningSecret />}
      {kind === 'pagerduty' && (
        <>
          <PasswordInput
            name="routingKey"
            label="Integration key"
            description="Of Events API v2"
            required
            autoComplete="off"
          />
          <NativeSelect name="region" label="Region" data={['us', 'eu']} />
        </>
      )}
      {kind === 'smtp' && <MailFields />}
    </>
  );
}

/** Made here, so that nobody takes a word. */
function SigningSecret() {
  const [secret, setSecret] = useState('');
  const make = (): void => {
    const bytes = crypto.getRandomValues(new Uint8Array(32));
    setSecret(`whsec_${btoa(String.fromCharCode(...bytes))}`);
  };
  return (
    <>
      <TextInput
        name="secret"
        label="Signing secret"
        description="Give it to the receiver now; it is not shown again"
        value={secret}
        onChange={event => setSecret(event.currentTarget.value)}
        required
        autoComplete="off"
        spellCheck={false}
      />
      <Button variant="default" size="xs" onClick={make}>
        Make a secret
      </Button>
    </>
  );
}

const MailFields = () => (
  <>
    <TextInput name="host" label="Mail server" required maxLength={253} autoComplete="off" />
    <NumberInput name="port" label="Port" min={1} max={65_535} defaultValue={587} required />
    <NativeSelect
      name="security"
      label="Encryption"
      data={[
        { value: 'starttls', label: 'STARTTLS, after the greeting' },
        { value: 'tls', label: 'TLS, from the first byte' },
        { value: 'none', label: 'none' },
      ]}
    />
    <TextInput name="from" type="email" label="From" required autoComplete="off" />
    <Textarea name="to" label="To" description="Addresses, one a line" required autoComplete="off" />
    <TextInput name="user" label="User" description="Empty: no login" autoComplete="off" />
    <PasswordInput name="password" label="Password" autoComplete="new-password" />
  </>
);

function Settings({
  name,
  was,
}: {
  name?: string;
  was?: Pick<ReceiverReply, 'severity' | 'onlyEscalated' | 'escalation'>;
}) {
  const others = useRead('/receivers', { query: { limit: 200 } });
  const names = others.data?.data.items.map(other => other.name).filter(other => other !== name) ?? [];
  return (
    <>
      <NativeSelect
        name="severity"
        label="Told of"
        defaultValue={was?.severity ?? 'warning'}
        data={[
          { value: 'warning', label: 'warnings and errors' },
          { value: 'error', label: 'errors' },
        ]}
      />
      <Checkbox
        name="onlyEscalated"
        label="Only of what another receiver escalates to it"
        defaultChecked={was?.onlyEscalated ?? false}
      />
      {names.length > 0 && (
        <>
          <NativeSelect
            // Read after the dialog was opened; what is chosen already is among them from then on.
            key={names.join()}
            name="escalateTo"
            label="Escalate to"
            description="When nobody has acknowledged"
            defaultValue={was?.escalation?.to ?? ''}
            data={[{ value: '', label: 'nobody' }, ...names]}
          />
          <NumberInput
            name="afterMinutes"
            label="After minutes"
            min={1}
            max={10_080}
            defaultValue={was?.escalation?.afterMinutes ?? 15}
          />
        </>
      )}
    </>
  );
}

function settingsIn(form: FormData) {
  const to = textOf(form, 'escalateTo');
  return {
    severity: textOf(form, 'severity') as 'warning' | 'error',
    onlyEscalated: form.has('onlyEscalated'),
    ...(form.has('escalateTo')
      ? { escalation: to === undefined ? null : { to, afterMinutes: Number(textOf(form, 'afterMinutes') ?? 15) } }
      : {}),
  };
}

function targetIn(form: FormData): TargetBody {
  const word = (name: string): string => textOf(form, name) ?? '';
  const kind = word('kind') as Kind;
  switch (kind) {
    case 'webhook':
      return { kind, url: word('url'), secret: word('secret') };
    case 'slack':
    case 'teams':
      return { kind, url: word('url') };
    case 'pagerduty':
      return { kind, routingKey: word('routingKey'), region: word('region') as 'us' | 'eu' };
    case 'smtp': {
      const user = textOf(form, 'user');
      const password = textOf(form, 'password');
      return {
        kind,
        host: word('host'),
        port: Number(word('port')),
        security: word('security') as 'starttls' | 'tls' | 'none',
        from: word('from'),
        to: word('to').split(/[\s,]+/),
        ...(user === undefined ? {} : { user }),
        ...(password === undefined ? {} : { password }),
      };
    }
  }
}
