import { Anchor, Group, Skeleton, Stack, Title } from '@mantine/core';
import { type ReactNode, useEffect } from 'react';
import { Link } from 'react-router';
import { ProblemAlert } from './problem-alert';

interface PageProps {
  title: string;
  /** Beside the title: buttons. */
  actions?: ReactNode;
  /** Where it belongs: name and path of what is above it. */
  above?: { name: string; to: string };
  children: ReactNode;
}

export function Page({ title, actions, above, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Trivet`;
  }, [title]);
  return (
    <Stack gap="md">
      {above && (
        <Anchor component={Link} to={above.to} size="sm">
          ← {above.name}
        </Anchor>
      )}
      <Group justify="space-between" align="flex-start" gap="sm">
        <Title order={1} size="h2" className="page-title" tabIndex={-1}>
          {title}
        </Title>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}

/** What every view of data has: nothing yet, an error, or the data; with old data an error stands above it. */
export function Loaded<T>({
  read,
  children,
}: {
  read: { data: T | undefined; error: unknown; refetch: () => unknown };
  children: (data: T) => ReactNode;
}) {
  const { data, error, refetch } = read;
  return (
    <>
      {error ? <ProblemAlert error={error} onRetry={() => void refetch()} /> : null}
      {data !== undefined ? children(data) : error ? null : <Loading />}
    </>
  );
}

export const Loading = () => (
  <Stack gap="xs" role="status" aria-label="Loading">
    {[0, 1, 2, 3].map(line => (
      <Skeleton key={line} height={28} />
    ))}
  </Stack>
);

/** A part of a page, with a heading that screen readers can jump to. */
export function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  const id = `section-${title.toLowerCase().replace(/\W+/g, '-')}`;
  return (
    <section aria-labelledby={id} className="section">
      <Group justify="space-between" mb="sm" gap="xs">
        <Title order={2} size="h4" id={id}>
          {title}
        </Title>
        {actions}
      </Group>
      {children}
    </section>
  );
}

/** Name and value pairs. */
export function Facts({ facts }: { facts: readonly (readonly [string, ReactNode] | false | null)[] }) {
  return (
    <dl className="facts">
      {facts
        .filter(fact => fact !== false && fact !== null)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value === null || value === undefined || value === '' ? '–' : value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Nothing here, and the next thing to do. */
export function Empty({ what, command, children }: { what: string; command?: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p>{what}</p>
      {children}
      {command && (
        <p>
          Next: <code>{command}</code>
        </p>
      )}
    </div>
  );
}
