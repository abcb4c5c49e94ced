import { Anchor, Stack } from '@mantine/core';
import { Link } from 'react-router';
import type { OverviewReply } from '#admin/contract/overview';
import { useMe } from '../api/me';
import { useRead } from '../api/read';
import { Ago } from '../parts/ago';
import { shareOf, showBytes, showCount, showDaysToFull, showDuration, showPercent, showTime } from '../parts/amounts';
import { Meter, TrendBars } from '../parts/charts';
import { DataTable } from '../parts/data-table';
import { Empty, Loaded, Page, Section } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { FirstRun } from './first-run';

const EVERY_MS = 5_000;
const LEGS = { cosi: 'Buckets (COSI)', csp: 'Volumes (CSP)', cbt: 'Changed blocks (CBT)' } as const;

export function OverviewPage() {
  const overview = useRead('/overview', {}, { every: EVERY_MS });
  return (
    <Page title="Overview">
      <Loaded read={{ ...overview, data: overview.data?.data }}>
        {data => (
          <Stack gap="md">
            <Attention entries={data.attention} />
            <FirstRun />
            <Work operations={data.operations} />
            <Health data={data} />
            <Capacity pools={data.capacity} />
            <p className="dimmed">
              Trivet {data.version}, as of <Ago at={data.at} />
            </p>
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}

type Entry = OverviewReply['attention'][number];

/** What has the same remedy stands together, and the remedy once. */
function Attention({ entries }: { entries: readonly Entry[] }) {
  if (entries.length === 0)
    return (
      <div className="notice notice-good">
        <strong>All is well.</strong> Nothing waits for a person.
      </div>
    );
  const notices = new Map<string, Entry[]>();
  for (const entry of entries) {
    const key = `${entry.severity} ${entry.means} ${entry.todo}`;
    notices.set(key, [...(notices.get(key) ?? []), entry]);
  }
  return (
    <Section title="Needs attention">
      <ul className="attention">
        {[...notices].map(([key, some]) => (
          <Notice key={key} entries={some} />
        ))}
      </ul>
    </Section>
  );
}

function Notice({ entries }: { entries: readonly Entry[] }) {
  const { severity, means, todo } = entries[0]!;
  return (
    <li className={`notice ${severity === 'error' ? 'notice-bad' : 'notice-warn'}`}>
      <ul className="plain-list">
        {entries.map(({ what, link, oldest }) => (
          <li key={`${what} ${link}`}>
            <p className="notice-title">
              <StateBadge state={severity} /> {what}{' '}
              {link && (
                <Anchor component={Link} to={link}>
                  Show {oldest ? 'them' : 'it'}
                </Anchor>
              )}
            </p>
            {oldest && (
              <p className="notice-more">
                The oldest, <Ago at={oldest.at} />: {oldest.what}{' '}
                <Anchor component={Link} to={`/operations/${oldest.operation}`}>
                  Show it
                </Anchor>
              </p>
            )}
          </li>
        ))}
      </ul>
      <dl className="advice">
        <dt>What it means</dt>
        <dd>{means}</dd>
        <dt>What to do</dt>
        <dd>{todo}</dd>
      </dl>
    </li>
  );
}

function Work({ operations }: { operations: OverviewReply['operations'] }) {
  const { waiting, running, stuck, oldestWaitingMs, perSecond, trend } = operations;
  const ended = trend.reduce((sum, minute) => sum + minute.ended, 0);
  const failed = trend.reduce((sum, minute) => sum + minute.failed, 0);
  const numbers: readonly (readonly [string, string, string])[] = [
    ['Ended per second', perSecond.toFixed(perSecond < 10 ? 1 : 0), '/operations'],
    ['Running', showCount(running), '/operations?state=running'],
    ['Waiting', showCount(waiting), '/operations?state=pending'],
    ['Oldest waits for', showDuration(oldestWaitingMs), '/operations?state=pending&sort=createdAt'],
    ['Stuck', showCount(stuck), '/operations?stuck=true'],
  ];
  return (
    <Section title="Operations">
      <div className="cards numbers">
        {numbers.map(([name, value, to]) => (
          <div key={name}>
            <div className="dimmed">{name}</div>
            <Anchor component={Link} to={to} c="inherit" className="big-number" aria-label={`${name}: ${value}`}>
              {value}
            </Anchor>
          </div>
        ))}
      </div>
      <TrendBars
        bars={trend.map(minute => ({
          key: minute.at,
          value: minute.ended,
          bad: minute.failed,
          title: `${showTime(minute.at)}: ${minute.ended} ended, ${minute.failed} of them failed`,
        }))}
        label={`Ended in each minute of the last hour: ${ended} in all, ${failed} of them failed`}
      />
      <p className="dimmed">
        Last hour, by minute: {showCount(ended)} ended, {showCount(failed)} failed
      </p>
    </Section>
  );
}

function Health({ data: { legs, backends, workers } }: { data: OverviewReply }) {
  const me = useMe();
  const workerState = workers.lost > 0 ? 'lost' : workers.up > 0 ? 'up' : 'down';
  return (
    <Section title="Health">
      <div className="cards">
        {legs.map(({ name, health, detail }) => (
          <div key={name}>
            <div>{LEGS[name]}</div>
            <StateBadge state={health} /> <span className="dimmed">{detail}</span>
          </div>
        ))}
        <div>
          <div>
            {me.appliance ? (
              <Anchor component={Link} to="/workers">
                Workers
              </Anchor>
            ) : (
              'Workers'
            )}
          </div>
          <StateBadge state={workerState} />{' '}
          <span className="dimmed">
            {workers.up} up{workers.lost > 0 ? `, ${workers.lost} lost` : ''}
          </span>
        </div>
      </div>
      <h3 className="sub-heading">Backends</h3>
      <DataTable
        label="Health of backends"
        rows={backends}
        keyOf={({ tenant, name }) => `${tenant}/${name}`}
        empty={<Empty what="No backend is registered." command="trivet backend create" />}
        columns={[
          {
            head: 'Backend',
            cell: ({ tenant, name }) => (
              <Anchor component={Link} to={`/tenants/${tenant}/backends/${encodeURIComponent(name)}`}>
                {me.appliance ? `${tenant} / ${name}` : name}
              </Anchor>
            ),
          },
          { head: 'Kind', cell: ({ kind }) => kind },
          { head: 'Health', cell: ({ health }) => <StateBadge state={health} /> },
          {
            head: 'Detail',
            cell: ({ health, detail, since }) => (
              <span>
                {detail}
                {since && (
                  <>
                    , {health === 'up' ? 'seen' : 'since'} <Ago at={since} />
                  </>
                )}
              </span>
            ),
          },
        ]}
      />
    </Section>
  );
}

function Capacity({ pools }: { pools: OverviewReply['capacity'] }) {
  if (pools.length === 0) return null;
  return (
    <Section title="Capacity">
      <div className="wide-cards">
        {pools.map(({ tenant, backend, pool, total, used, daysToFull, trend }) => {
          const share = shareOf(used, total);
          const name = `${tenant} / ${backend} / ${pool}`;
          return (
            <div key={name}>
              <div>{name}</div>
              <Meter share={share} label={`Used of ${name}`}>
                {showBytes(used)} of {showBytes(total)} used, {showPercent(share)}
                {daysToFull !== null && `, full in ${showDaysToFull(daysToFull)}`}
              </Meter>
              {trend.length < 2 ? (
                <p className="dimmed">No trend yet: a figure is kept for each hour.</p>
              ) : (
                <TrendBars
                  height={36}
                  bars={trend.map(hour => ({
                    key: hour.at,
                    value: Number(hour.used),
                    title: `${showTime(hour.at)}: ${showBytes(hour.used)}`,
                  }))}
                  label={`Used by hour: from ${showBytes(trend[0]?.used)} to ${showBytes(trend.at(-1)?.used)}`}
                />
              )}
            </div>
          );
        })}
      </div>
    </Section>
  );
}
