import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
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
    placeholderData: keepPreviousData,
    enabled,
  });
}

/** Reads again at once what a change of this page touched, also while it is paused. */
export function useReadAgain(): (part?: string) => Promise<void> {
  const client = useQueryClient();
  return (part = '') => client.invalidateQueries({ predicate: ({ queryKey: [path] }) => String(path).includes(part) });
}
