import { Button, Group, NativeSelect, TextInput } from '@mantine/core';
import { useCallback, useEffect, useRef, useState } from 'react';
import { useSearchParams } from 'react-router';
import { PickFilter, type PickList } from './pick-filter';
import { unknownOf } from './unknown-filters';

export interface Filters {
  /** '' when it is not set. */
  get(name: string): string;
  set(name: string, value: string): void;
  /** Names that have a value. */
  active: readonly string[];
  clear(): void;
  /** Names in the address that filter nothing here. */
  unknown: readonly string[];
  /** As query of the API, with the page that is shown. */
  query: Record<string, string>;
}

/** A saved view or a link of another release may ask for less than is shown. */
export function UnknownFilters({ filters: { unknown } }: { filters: Filters }) {
  if (unknown.length === 0) return null;
  return <p role="alert">This list knows no filter {unknown.join(', ')}: it shows more than was asked for.</p>;
}

/** Filters live in the URL: a link shows another person the same list. */
export function useFilters(names: readonly string[]): Filters {
  const [search, setSearch] = useSearchParams();
  // What is set before the URL has changed for another one is kept: the router gives both the same URL to begin with.
  const pending = useRef(new Map<string, string>());
  useEffect(() => {
    for (const [name, value] of pending.current) if ((search.get(name) ?? '') === value) pending.current.delete(name);
  }, [search]);
  const change = useCallback(
    (values: Readonly<Record<string, string>>) => {
      for (const [name, value] of Object.entries(values)) pending.current.set(name, value);
      setSearch(
        before => {
          const after = new URLSearchParams(before);
          // A cursor belongs to the filters that it was made with.
          after.delete('cursor');
          for (const [name, value] of pending.current) {
            if (value === '') after.delete(name);
            else after.set(name, value);
          }
          return after;
        },
        { replace: true },
      );
    },
    [setSearch],
  );
  const active = names.filter(name => search.get(name));
  const query = Object.fromEntries(
    [...active, 'cursor'].flatMap(name => (search.get(name) ? [[name, search.get(name)!]] : [])),
  );
  return {
    get: name => search.get(name) ?? '',
    set: (name, value) => change({ [name]: value }),
    active,
    unknown: unknownOf(search.keys(), names),
    clear: () => change(Object.fromEntries(names.map(name => [name, '']))),
    query,
  };
}

export interface FilterField {
  name: string;
  label: string;
  /** A choice when given: value and name of each. */
  options?: readonly (readonly [string, string])[];
  /** What it is when none of them is chosen; `any` when absent. */
  unset?: string;
  /** One of these, by its name. */
  pick?: PickList;
  placeholder?: string;
  type?: 'text' | 'datetime-local';
}

/** Of lists over all tenants. */
export const OF_TENANT: FilterField = { name: 'tenant', label: 'Tenant', placeholder: 'name' };

/** Of lists of what lies on backends; `orders` beside those by age. */
export const resourceFields = (orders: readonly (readonly [string, string])[] = []): readonly FilterField[] => [
  { name: 'search', label: 'Name', placeholder: 'part of it' },
  {
    name: 'state',
    label: 'State',
    options: ['ready', 'creating', 'deleting'].map(state => [state, state] as const),
  },
  { name: 'backend', label: 'Backend' },
  { name: 'condition', label: 'Condition', options: [['true', 'only with one']] },
  {
    name: 'sort',
    label: 'Order',
    unset: 'by name',
    options: [
      ['-name', 'by name, last first'],
      ['-createdAt', 'newest first'],
      ['createdAt', 'oldest first'],
      ...orders,
    ],
  },
];

export function FilterBar({ filters, fields }: { filters: Filters; fields: readonly FilterField[] }) {
  const [opened, setOpened] = useState(false);
  return (
    <search>
      <Button
        hiddenFrom="sm"
        variant="default"
        size="xs"
        aria-expanded={opened}
        mb={opened ? 'xs' : 0}
        onClick={() => setOpened(!opened)}
      >
        Filters{filters.active.length > 0 ? ` (${filters.active.length})` : ''}
      </Button>
      <Group gap="xs" align="flex-end" className={opened ? 'filter-bar opened' : 'filter-bar'}>
        {fields.map(field =>
          field.options ? (
            <NativeSelect
              key={field.name}
              size="xs"
              label={field.label}
              value={filters.get(field.name)}
              data={[
                { value: '', label: field.unset ?? 'any' },
                ...field.options.map(([value, label]) => ({ value, label })),
              ]}
              onChange={event => filters.set(field.name, event.currentTarget.value)}
            />
          ) : field.pick ? (
            <PickFilter
              key={field.name}
              label={field.label}
              list={field.pick}
              value={filters.get(field.name)}
              onChange={id => filters.set(field.name, id)}
            />
          ) : (
            <TextFilter key={field.name} field={field} value={filters.get(field.name)} onChange={filters.set} />
          ),
        )}
        {filters.active.length > 0 && (
          <Button variant="default" size="xs" onClick={filters.clear}>
            Clear filters
          </Button>
        )}
      </Group>
    </search>
  );
}

const SETTLE_MS = 350;

/** Typed text counts when the typing stops, or at Enter. */
function TextFilter({
  field: { name, label, placeholder, type = 'text' },
  value,
  onChange,
}: {
  field: FilterField;
  value: string;
  onChange: (name: string, value: string) => void;
}) {
  const isTime = type === 'datetime-local';
  const shown = isTime ? toLocal(value) : value;
  const [text, setText] = useState(shown);
  useEffect(() => setText(shown), [shown]);
  const say = useCallback(
    (typed: string) => onChange(name, isTime ? toInstant(typed) : typed.trim()),
    [isTime, name, onChange],
  );
  useEffect(() => {
    if (text === shown) return;
    const timer = setTimeout(() => say(text), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [text, shown, say]);
  return (
    <TextInput
      size="xs"
      type={type}
      label={label}
      placeholder={placeholder}
      value={text}
      onChange={event => setText(event.currentTarget.value)}
      onKeyDown={event => event.key === 'Enter' && say(text)}
    />
  );
}

/** The URL has instants, the input local time. */
function toLocal(instant: string): string {
  const at = Date.parse(instant);
  if (Number.isNaN(at)) return '';
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const toInstant = (local: string): string => (local === '' ? '' : new Date(local).toISOString());
