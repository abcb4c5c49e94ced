import { Stack } from '@mantine/core';
import { useParams } from 'react-router';
import type { OperationDetailReply } from '#admin/contract/operations';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act } from '../parts/act';
import { Ago, useNow } from '../parts/ago';
import { showDuration } from '../parts/amounts';
import type { BulkItemsProps } from '../parts/bulk-items';
import { Copy } from '../parts/copy';
import { later } from '../parts/later';
import { BackendLink, To } from '../parts/links';
import { ResourceLink } from '../parts/operation-list';
import { Facts, Loaded, Page, Section } from '../parts/page';
import { runsOf } from '../parts/runs';
import { StateBadge } from '../parts/state-badge';

const BulkItems = later<BulkItemsProps>(async () => (await import('../parts/bulk-items')).BulkItems);

/** Of one that is under way some changes come without an event: its lease, its turn. */
const EVERY_MS = 3_000;

export function OperationPage() {
  const { operation = '' } = useParams();
  const read = useRead('/operations/{operation}', { params: { operation } }, { every: EVERY_MS });
  const data = read.data?.data;
  return (
    <Page
      title={data ? `${data.kind} ${data.resource.name}` : 'Operation'}
      above={{ name: 'Operations', to: '/operations' }}
      actions={data && <Actions operation={data} />}
    >
      <Loaded read={{ ...read, data }}>
        {detail => (
          <Stack gap="md">
            <State operation={detail} />
            {detail.items && <BulkItems operation={detail.id} counts={detail.items} />}
            <Steps steps={detail.steps} />
            <Details operation={detail} />
            <Timeline events={detail.events} />
            <Section title="What was asked">
              <pre className="json">{JSON.stringify(detail.request, null, 2)}</pre>
            </Section>
            {detail.result !== null && detail.result !== undefined && (
              <Section title="Result">
                <pre className="json">{JSON.stringify(detail.result, null, 2)}</pre>
              </Section>
            )}
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}

const ACTIONS = {
  retry: {
    label: 'Retry now',
    title: 'Try this operation again now',
    explain: 'It begins with its first step, which looks at what is there; what was done is found, not done twice.',
    done: 'It will be tried again now',
    role: 'operator',
    reason: 'optional',
  },
  cancel: {
    label: 'Cancel',
    title: 'Ask this operation to stop',
    explain: 'It stops between two steps and undoes what it did.',
    done: 'It was asked to stop',
    role: 'operator',
    reason: 'required',
  },
  resolve: {
    label: 'Resolve',
    title: 'End this operation as failed',
    explain:
      'It needs no more attention then. What it left at the backend is not cleaned up by this; the audit of the backend finds it.',
    done: 'It was ended as failed',
    role: 'admin',
    reason: 'required',
  },
  release: {
    label: 'Release by force',
    title: 'Take this operation from its worker',
    explain:
      'Its lease ends now and another worker begins it again. The worker that has it finds its fence refused and changes nothing.',
    done: 'It was taken from its worker',
    role: 'admin',
    reason: 'required',
  },
} as const;

/** Of a bulk. */
const STOP = {
  ...ACTIONS.cancel,
  label: 'Stop',
  title: 'Stop this bulk',
  explain: 'What has not begun stays as it is; what has begun goes on to its end.',
} as const;

function Actions({ operation: { id, resource, actions, items } }: { operation: OperationDetailReply }) {
  const may = useMay();
  return actions
    .filter(verb => may(ACTIONS[verb].role))
    .map(verb => {
      const { label, title, explain, done, reason } = verb === 'cancel' && items ? STOP : ACTIONS[verb];
      const danger = verb === 'resolve' || verb === 'release';
      return (
        <Act
          key={verb}
          label={label}
          title={title}
          explain={explain}
          reason={reason}
          primary={verb === 'retry'}
          danger={danger}
          confirmName={danger ? resource.name : undefined}
          done={done}
          run={async (_, why) => {
            await call('POST', `/operations/{operation}/${verb}`, {
              params: { operation: id },
              body: { reason: why as string },
            });
            return undefined;
          }}
        />
      );
    });
}

function State({ operation }: { operation: OperationDetailReply }) {
  const { state, error, advice, nextRunAt, cancelRequested } = operation;
  const bad = state === 'needs_attention' || state === 'failed';
  return (
    <div className={`notice ${bad ? 'notice-bad' : error ? 'notice-warn' : 'notice-good'}`}>
      <p className="notice-title">
        <StateBadge state={state} />
        {cancelRequested && ' was asked to stop'}
        {nextRunAt && state === 'pending' && (
          <>
            {' '}
            next attempt <Ago at={nextRunAt} />
          </>
        )}
      </p>
      {(error || advice) && (
        <dl className="advice">
          {error && (
            <>
              <dt>What happened</dt>
              <dd>
                <code>{error.kind}</code>: {error.message}
              </dd>
              <dt>What it means</dt>
              <dd>{MEANS[error.retry]}</dd>
            </>
          )}
          {advice && (
            <>
              <dt>What to do</dt>
              <dd>{advice}</dd>
            </>
          )}
        </dl>
      )}
    </div>
  );
}

const MEANS = {
  never: 'A repeat of the same request does not help.',
  later: 'It will be tried again by itself; a repeat may succeed.',
  person: 'It waits for a person: a repeat by itself could do harm or does not help.',
} as const;

function Steps({ steps }: { steps: OperationDetailReply['steps'] }) {
  if (steps.length === 0) return null;
  return (
    <Section title="Steps">
      <ol className="steps">
        {steps.map(({ name, state }) => (
          <li key={name} className={state} aria-current={state === 'current' ? 'step' : undefined}>
            <span>{name}</span> <StateBadge state={state} />
          </li>
        ))}
      </ol>
    </Section>
  );
}

function Details({ operation }: { operation: OperationDetailReply }) {
  const now = useNow();
  const { lease, dispatch, waitsFor, startedAt, finishedAt } = operation;
  const until = finishedAt ? Date.parse(finishedAt) : operation.state === 'running' ? now : undefined;
  const ran = startedAt && until !== undefined && Math.max(0, until - Date.parse(startedAt));
  return (
    <Section title="Details">
      <Facts
        facts={[
          ['Resource', <ResourceLink key="resource" operation={operation} />],
          [
            'Tenant',
            <To key="tenant" to={`/tenants/${operation.tenant}`}>
              {operation.tenant}
            </To>,
          ],
          ['Backend', operation.backend === '' ? 'several' : <BackendLink key="backend" {...operation} />],
          ['Class', operation.class],
          ['Asked for by', operation.actor],
          ['Attempts', operation.attempt],
          operation.crashes > 0 && ['Ended with their worker', operation.crashes],
          ['Accepted', <Ago key="accepted" at={operation.createdAt} />],
          ['Began', <Ago key="began" at={startedAt} />],
          ['Ended', <Ago key="ended" at={finishedAt} />],
          ['Took', typeof ran === 'number' ? showDuration(ran) : null],
          [
            'Lease',
            lease ? (
              <span key="lease">
                {lease.worker}, until <Ago at={lease.until} />, fence {lease.fence}
              </span>
            ) : (
              'nobody has it'
            ),
          ],
          [
            'Dispatched',
            dispatch.number === 0 ? 'not yet' : dispatch.number === 1 ? 'once' : `${dispatch.number} times`,
          ],
          [
            'Waits for',
            waitsFor.length === 0 ? (
              'nothing'
            ) : (
              <ul key="waits" className="plain-list">
                {waitsFor.map(({ operation: id, kind, slot }) => (
                  <li key={id}>
                    <To to={`/operations/${id}`}>{kind}</To> ({slot})
                  </li>
                ))}
              </ul>
            ),
          ],
          ['Id', <Copy key="id" text={operation.id} label="the id" />],
          operation.traceparent !== null && [
            'Trace',
            <Copy key="trace" text={operation.traceparent} label="the trace" />,
          ],
        ]}
      />
    </Section>
  );
}

const TONES: Readonly<Record<string, string>> = {
  succeeded: 'tone-good',
  failed: 'tone-bad',
  needs_attention: 'tone-bad',
  retry: 'tone-bad',
  attempt: 'tone-busy',
  step: 'tone-busy',
};

/** Oldest first, as it happened. */
function Timeline({ events }: { events: OperationDetailReply['events'] }) {
  return (
    <Section title="Timeline">
      <ol className="timeline">
        {runsOf(events).map(({ last: { id, at, type, detail }, count, firstAt }) => (
          <li key={id} className={TONES[type]}>
            <strong>{type.replaceAll('_', ' ')}</strong>
            {count > 1 && (
              <>
                {' '}
                {count} times, first <Ago at={firstAt} />, last
              </>
            )}{' '}
            <Ago at={at} />
            <div className="timeline-detail">{words(type, detail)}</div>
          </li>
        ))}
      </ol>
    </Section>
  );
}

const words = (type: string, detail: Readonly<Record<string, unknown>>): string =>
  Object.entries(detail)
    .filter(([, value]) => value !== null && value !== undefined && value !== '')
    // The back-off of an attempt after which nothing is tried again.
    .filter(([name]) => name !== 'delayMs' || type === 'retry')
    .map(([name, value]) => wordsOf(name, value))
    .join(', ');

/** An error as a person says it; whether it is tried again stands above, and its resource in the details. */
function wordsOf(name: string, value: unknown): string {
  const { kind, message } = (value ?? {}) as { kind?: unknown; message?: unknown };
  if (typeof message === 'string') return kind === undefined ? message : `${String(kind)}: ${message}`;
  if (name === 'delayMs' && typeof value === 'number') return `again after ${showDuration(value)}`;
  return `${name}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`;
}
