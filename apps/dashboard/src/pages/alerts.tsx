import { NumberInput, TextInput } from '@mantine/core';
import { useParams } from 'react-router';
import type { AlertReply } from '#admin/contract/alerts';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { DataTable } from '../parts/data-table';
import type { FilterField } from '../parts/filters';
import { To } from '../parts/links';
import { ListPage } from '../parts/list-page';
import { Empty, Facts, Loaded, Page, Section } from '../parts/page';
import { StateBadge } from '../parts/state-badge';

/** Nothing tells of them as they come. */
const EVERY_MS = 5_000;

const fields: readonly FilterField[] = [
  {
    name: 'state',
    label: 'State',
    options: [
      ['open', 'open'],
      ['acknowledged', 'acknowledged'],
      ['ended', 'ended'],
    ],
  },
  {
    name: 'severity',
    label: 'Severity',
    options: [
      ['error', 'error'],
      ['warning', 'warning'],
    ],
  },
];

export function AlertsPage() {
  const may = useMay();
  return (
    <ListPage
      title="Alerts"
      path="/alerts"
      fields={fields}
      every={EVERY_MS}
      intro={
        <>
          What needs somebody, and what did in the last 90 days. Told to <To to="/receivers">receivers</To>, unless
          there is a <To to="/silences">silence</To>.
        </>
      }
      empty={<Empty what="Nothing is wrong." />}
      columns={[
        { head: 'State', cell: alert => <AlertState alert={alert} /> },
        { head: 'What', cell: ({ id, what }) => <To to={`/alerts/${id}`}>{what}</To>, wide: true },
        { head: 'Rule', cell: ({ rule }) => rule.replaceAll('_', ' ') },
        { head: 'Since', cell: ({ since }) => <Ago at={since} /> },
        { head: 'Ended', cell: ({ endedAt }) => (endedAt ? <Ago at={endedAt} /> : '–') },
        { head: 'By', cell: ({ acknowledged }) => acknowledged?.by ?? '–' },
        {
          head: 'Actions',
          cell: alert =>
            may('operator') &&
            alert.state !== 'ended' && (
              <span className="row-actions">
                <AlertActions alert={alert} small />
              </span>
            ),
        },
      ]}
    />
  );
}

/** Of one that is open how bad it is. */
const AlertState = ({ alert: { state, severity, silenced } }: { alert: AlertReply }) => (
  <>
    <StateBadge state={state === 'open' ? severity : state} />
    {silenced && state === 'open' && <span className="dimmed"> silenced</span>}
  </>
);

export function AlertPage() {
  const { alert: id = '' } = useParams();
  const may = useMay();
  const read = useRead('/alerts/{alert}', { params: { alert: id } }, { every: EVERY_MS });
  const alert = read.data?.data;
  return (
    <Page
      title={alert ? alert.rule.replaceAll('_', ' ') : 'Alert'}
      above={{ name: 'Alerts', to: '/alerts' }}
      actions={alert && may('operator') && alert.state !== 'ended' && <AlertActions alert={alert} />}
    >
      <Loaded read={{ ...read, data: alert }}>
        {one => (
          <>
            <Facts
              facts={[
                ['State', <AlertState key="state" alert={one} />],
                ['What', one.what],
                ['What follows', one.means],
                ['What to do', one.todo],
                ['Where', one.link && <To to={one.link}>{one.object || one.link}</To>],
                ['Since', <Ago key="since" at={one.since} />],
                ['Ended', one.endedAt && <Ago at={one.endedAt} />],
                ['Acknowledged by', one.acknowledged?.by],
                ['Note', one.acknowledged?.note],
              ]}
            />
            <Section title="Who was told">
              <DataTable
                label="Who was told"
                rows={one.deliveries}
                keyOf={delivery => delivery.id}
                empty={<Empty what="Nobody was told of it." command="trivet receiver create" />}
                columns={[
                  { head: 'Receiver', cell: ({ receiver }) => receiver },
                  { head: 'That it is', cell: ({ event }) => event },
                  { head: 'State', cell: ({ state }) => <StateBadge state={state} /> },
                  { head: 'Tries', cell: ({ attempts }) => attempts },
                  { head: 'When', cell: ({ sentAt, createdAt }) => <Ago at={sentAt ?? createdAt} /> },
                  { head: 'Error', cell: ({ error }) => error ?? '–', wide: true },
                ]}
              />
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  );
}

const AlertActions = ({ alert, small = false }: { alert: AlertReply; small?: boolean }) => (
  <>
    {alert.state === 'open' && <Acknowledge alert={alert} small={small} />}
    <Silence alert={alert} small={small} />
  </>
);

interface OfAlert {
  alert: AlertReply;
  small: boolean;
}

const Acknowledge = ({ alert: { id, what }, small }: OfAlert) => (
  <Act
    small={small}
    primary={!small}
    label="Acknowledge"
    title="Look after this alert"
    explain={`${what} Those who were told of it are told that you look after it, and nobody else is told.`}
    done="You look after it"
    run={async form => {
      const note = textOf(form, 'note');
      const body = note === undefined ? {} : { note };
      await call('POST', '/alerts/{alert}/acknowledge', { params: { alert: id }, body });
      return undefined;
    }}
  >
    <TextInput
      name="note"
      label="Note"
      description="Told to the others"
      maxLength={500}
      autoComplete="off"
      data-autofocus
    />
  </Act>
);

const Silence = ({ alert: { rule, object }, small }: OfAlert) => (
  <Act
    small={small}
    label="Silence"
    title={`Silence ${rule.replaceAll('_', ' ')}`}
    explain={
      object === ''
        ? 'Nobody is told of it for a while. What is still open then is told.'
        : `Nobody is told of it for ${object} for a while. What is still open then is told.`
    }
    reason="required"
    done="It is silenced"
    run={async (form, reason) => {
      const minutes = Number(textOf(form, 'minutes') ?? 60);
      // An object without a name is all that its rule has.
      const body = { rule, object: object === '' ? null : object, minutes, reason: reason ?? '' };
      await call('POST', '/silences', { body });
      return undefined;
    }}
  >
    <NumberInput name="minutes" label="Minutes" min={1} max={43_200} defaultValue={60} required data-autofocus />
  </Act>
);

export function SilencesPage() {
  const may = useMay();
  return (
    <ListPage
      title="Silences"
      path="/silences"
      every={EVERY_MS}
      intro="Of what nobody is told for a while. They are made at an alert."
      empty={<Empty what="Nothing is silenced." command="trivet silence create" />}
      columns={[
        { head: 'Rule', cell: ({ rule }) => rule?.replaceAll('_', ' ') ?? 'any' },
        { head: 'Object', cell: ({ object }) => object ?? 'any', wide: true },
        { head: 'Until', cell: ({ until }) => <Ago at={until} /> },
        { head: 'By', cell: ({ by }) => by },
        { head: 'Reason', cell: ({ reason }) => reason, wide: true },
        {
          head: 'Actions',
          cell: ({ id }) =>
            may('operator') && (
              <Act
                small
                label="End"
                title="End this silence"
                explain="What is open is told again from now on."
                done="The silence is over"
                run={async () => {
                  await call('DELETE', '/silences/{silence}', { params: { silence: id } });
                  return undefined;
                }}
              />
            ),
        },
      ]}
    />
  );
}
