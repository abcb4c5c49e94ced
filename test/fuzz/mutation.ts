import fc from 'fast-check';
import { anyJson, nastyText } from '#test/fuzz/schema-arbitrary';

type Path = readonly (string | number)[];

/** One wrong thing done to a value that was right. */
export interface Mutation {
  kind: 'drop' | 'replace' | 'add' | 'wrap' | 'lengthen';
  /** Which of its nodes, counted around. */
  at: number;
  key: string;
  value: unknown;
}

export const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom(
    'drop' as const,
    'replace' as const,
    'replace' as const,
    'add' as const,
    'wrap' as const,
    'lengthen' as const,
  ),
  at: fc.nat(1_000),
  key: fc.oneof(fc.constantFrom('unknown', '__proto__', 'constructor', 'a/b~c', 'tenant_id'), nastyText),
  value: anyJson,
});

/** A copy of `root` with the mutation in it. */
export function mutate(root: unknown, { kind, at, key, value }: Mutation): unknown {
  const paths = nodesOf(root);
  const path = paths[at % paths.length]!;
  const node = read(root, path);
  switch (kind) {
    case 'drop':
      return path.length === 0 ? undefined : edit(root, path, () => DROPPED);
    case 'replace':
      return edit(root, path, () => value);
    case 'add':
      return edit(root, path, () => (isObject(node) ? { ...node, [key]: value } : value));
    case 'wrap':
      return edit(root, path, () => (at % 2 === 0 ? [node] : { value: node }));
    case 'lengthen':
      return edit(root, path, () => (typeof node === 'string' ? node + 'x'.repeat(6_000) : [node, node]));
  }
}

const DROPPED = Symbol('dropped');
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function nodesOf(value: unknown, path: Path = []): Path[] {
  const below = Array.isArray(value)
    ? value.flatMap((item, index) => nodesOf(item, [...path, index]))
    : isObject(value)
      ? Object.entries(value).flatMap(([key, item]) => nodesOf(item, [...path, key]))
      : [];
  return [path, ...below];
}

const read = (value: unknown, path: Path): unknown =>
  path.reduce((node, key) => (node as Record<string | number, unknown>)[key], value);

function edit(value: unknown, path: Path, change: () => unknown): unknown {
  if (path.length === 0) return change();
  const [key, ...rest] = path;
  if (Array.isArray(value))
    return value.flatMap((item, index) => {
      if (index !== key) return [item];
      const changed = edit(item, rest, change);
      return changed === DROPPED ? [] : [changed];
    });
  const entries = Object.entries(value as object).flatMap(([name, item]) => {
    if (name !== key) return [[name, item] as const];
    const changed = edit(item, rest, change);
    return changed === DROPPED ? [] : [[name, changed] as const];
  });
  // Also a member of the name __proto__ is one.
  const made: Record<string, unknown> = {};
  for (const [name, item] of entries)
    Object.defineProperty(made, name, { value: item, enumerable: true, configurable: true, writable: true });
  return made;
}
