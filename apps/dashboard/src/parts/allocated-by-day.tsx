import { useRead } from '../api/read';
import { showBytes } from './amounts';
import { TrendBars } from './charts';
import { Empty, Loaded, Section } from './page';

/** What a volume had of its pool at the begin of each day, as bars, and its ends in words. */
export function AllocatedByDay({ tenant, volume }: { tenant: string; volume: string }) {
  const read = useRead('/tenants/{tenant}/volumes/{volume}/history', {
    params: { tenant, volume },
    query: { days: '90' },
  });
  return (
    <Section title="Allocated by day">
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ items }) => {
          const days = items.toReversed();
          const [first, last] = [days[0], days.at(-1)];
          if (!first || !last) return <Empty what="It is measured once a day, and was not yet." />;
          const words = `${showBytes(first.allocated)} on ${first.day}, ${showBytes(last.allocated)} of ${showBytes(last.size)} on ${last.day}`;
          return (
            <>
              <TrendBars
                label={`Allocated by day: ${words}`}
                bars={days.map(({ day, allocated }) => ({
                  key: day,
                  value: Number(allocated),
                  title: `${day}: ${showBytes(allocated)}`,
                }))}
              />
              <p className="dimmed">{words}</p>
            </>
          );
        }}
      </Loaded>
    </Section>
  );
}
