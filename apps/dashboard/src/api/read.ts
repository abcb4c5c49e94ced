import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type Answer, call } from './client';
import { useLive } from './live';
import type { ApiProblem } from './problem';
import type { Find, Input, PathOf, ReadOf } from './routes';

interface ReadOptions {
  /** Milliseconds; for what changes without an event. Rests while the page is paused. */
  every?: number;
  enabled?: boolean;
}

/** Reads a path of the API, and again whenever an event says that it may be different. */
export function useRead<P extends PathOf<'GET'>>(
  path: P,
  input: Input<Find<'GET', P>>,
  { every, enabled = true }: ReadOptions = {},
) {
  const { paused } = useLive();
  return useQuery<Answer<ReadOf<P>>, ApiProblem>({
    queryKey: [path, input],
    queryFn: ({ signal }) => call('GET', path, input, { signal }) as Promise<Answer<ReadOf<P>>>,
    refetchInterval: every !== undefined && !paused ? every : false,
    // What was read for another tenant or object is not shown as this one's, however slow the answer is.
    placeholderData: (before, of) => (isOfSame(of?.queryKey, [path, input]) ? before : undefined),
    enabled,
  });
}

/** Whether two reads are of one tenant and object, and differ in filters and pages at most. */
export const isOfSame = (one: readonly unknown[] | undefined, other: readonly unknown[]): boolean =>
  one?.[0] === other[0] && JSON.stringify(paramsOf(one)) === JSON.stringify(paramsOf(other));

const paramsOf = (key: readonly unknown[] | undefined): unknown =>
  (key?.[1] as { params?: unknown } | undefined)?.params;

/** Reads again at once what a change of this page touched, also while it is paused. */
export function useReadAgain(): (part?: string) => Promise<void> {
  const client = useQueryClient();
  return (part = '') => client.invalidateQueries({ predicate: ({ queryKey: [path] }) => String(path).includes(part) });
}
