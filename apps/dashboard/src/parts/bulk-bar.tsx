import { Button, Group } from '@mantine/core';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { call } from '../api/client';
import { Act } from './act';
import type { BulkBody, Choosing } from './choosing';
import { ProblemAlert } from './problem-alert';

/** Of one call by ids, and by a filter. */
const MOST = { ids: 1_000, matching: 10_000 } as const;
/** Names that a dialog says one by one. */
const SAID = 8;

/** How many are chosen, and what can be done to them. */
export function BulkBar({ choosing }: { choosing: Choosing }) {
  const { bulk, chosen, matching, filter } = choosing;
  const navigate = useNavigate();
  const { tenant, noun } = bulk;
  const count = matching?.count ?? chosen.size;
  const counted = `${count.toLocaleString('en')} ${count === 1 ? noun[0] : noun[1]}`;
  const tooMany = matching === undefined && chosen.size > MOST.ids;
  return (
    <section className="notice bulk-bar" aria-label="What is chosen">
      <Group gap="xs">
        <strong role="status">
          {counted} chosen{matching !== undefined && ', all that match'}
        </strong>
        {matching === undefined && (
          <Button size="compact-xs" variant="default" onClick={choosing.choosePage}>
            Choose this page
          </Button>
        )}
        {matching === undefined && <ChooseMatching choosing={choosing} />}
        <Button size="compact-xs" variant="default" onClick={choosing.none}>
          Choose none
        </Button>
        {bulk.actions.map(({ starts, label, explain, danger, reason }) => (
          <Act
            key={starts}
            small
            danger={danger}
            disabled={tooMany}
            label={`${label} ${count.toLocaleString('en')}`}
            title={`${label}: ${counted} of ${tenant}`}
            explain={`${matching === undefined ? `${saidOf([...chosen.values()])}. ` : ''}${explain}`}
            confirmName={danger ? String(count) : undefined}
            reason={reason}
            done="It has begun"
            run={async (_, why) => {
              const body = {
                ...(matching === undefined ? { ids: [...chosen.keys()] } : { filter, ...matching }),
                reason: why,
              };
              const { data } = await call('POST', starts, { params: { tenant }, body: body as BulkBody });
              choosing.none();
              void navigate(`/operations/${data.operation}`);
              return undefined;
            }}
          />
        ))}
      </Group>
      {tooMany && <p>More than {MOST.ids} cannot be named one by one: filter the list, and choose all that match.</p>}
    </section>
  );
}

/** They are counted when it is asked for: whoever does something to all of them sees how many those are. */
function ChooseMatching({ choosing }: { choosing: Choosing }) {
  const { bulk, filter, chooseMatching } = choosing;
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [tooMany, setTooMany] = useState(false);
  const count = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      const params = { tenant: bulk.tenant };
      const { data } = await call('GET', bulk.totals, { params, query: { ...filter, ...bulk.counts } as never });
      const { more, digest } = data;
      if (more || data.count > MOST.matching) setTooMany(true);
      else chooseMatching({ count: data.count, digest: digest ?? undefined });
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Button size="compact-xs" variant="default" loading={busy} onClick={() => void count()}>
        Choose all that match
      </Button>
      {tooMany && <span role="alert">More than {MOST.matching.toLocaleString('en')} match: narrow the filters.</span>}
      {error !== undefined && <ProblemAlert error={error} />}
    </>
  );
}

function saidOf(names: readonly string[]): string {
  const shown = names.slice(0, SAID).join(', ');
  return names.length > SAID ? `${shown} and ${names.length - SAID} more` : shown;
}
