import { Modal, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { useNavigate } from 'react-router';
import { useRead } from '../api/read';
import type { ReadOf } from '../api/routes';
import { ProblemAlert } from '../parts/problem-alert';

type Group = ReadOf<'/search'>['groups'][number];
type Kind = Group['kind'];
type Item = Group['items'][number];

const KINDS: Readonly<Record<Kind, readonly [name: string, path: (item: Item) => string]>> = {
  tenant: ['Tenants', ({ name }) => `/tenants/${name}`],
  volume: ['Volumes', ({ tenant, id }) => `/tenants/${tenant}/volumes/${id}`],
  snapshot: ['Snapshots', ({ tenant, id }) => `/tenants/${tenant}/snapshots/${id}`],
  bucket: ['Buckets', ({ tenant, id }) => `/tenants/${tenant}/buckets/${id}`],
  access: ['Accesses', ({ tenant, id }) => `/tenants/${tenant}/accesses/${id}`],
  host: ['Hosts', ({ tenant, id }) => `/tenants/${tenant}/hosts/${id}`],
  backend: ['Backends', ({ tenant, name }) => `/tenants/${tenant}/backends/${encodeURIComponent(name)}`],
  operation: ['Operations', ({ id }) => `/operations/${id}`],
};

const SETTLE_MS = 150;

export function SearchDialog({ opened, close }: { opened: boolean; close: () => void }) {
  return (
    <Modal
      opened={opened}
      onClose={close}
      title="Search"
      size="lg"
      returnFocus={false}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <SearchBox onGo={close} />
    </Modal>
  );
}

/** A field with a list below it: arrows walk through the list while the field keeps the cursor. */
function SearchBox({ onGo }: { onGo: () => void }) {
  const navigate = useNavigate();
  const base = useId();
  const [typed, setTyped] = useState('');
  const [settled] = useDebouncedValue(typed.trim(), SETTLE_MS);
  const [at, setAt] = useState(0);
  const [hurried, setHurried] = useState(false);
  const read = useRead('/search', { query: { q: settled } }, { enabled: settled !== '' });
  // Of what stands in the field, and not of a beginning of it.
  const isCurrent = settled === typed.trim() && settled !== '' && read.isSuccess && !read.isPlaceholderData;
  const groups = settled === '' ? [] : (read.data?.data.groups ?? []);
  const paths = groups.flatMap(({ kind, items }) => items.map(item => KINDS[kind][1](item)));
  const chosen = Math.min(at, paths.length - 1);
  const go = (path: string | undefined): void => {
    if (path === undefined) return;
    onGo();
    void navigate(path);
  };
  const goLater = useRef(go);
  goLater.current = go;
  const first = paths[0];
  // Enter came before the answer.
  useEffect(() => {
    if (!hurried || !isCurrent) return;
    setHurried(false);
    goLater.current(first);
  }, [hurried, isCurrent, first]);
  const chosenId = chosen < 0 ? undefined : `${base}-${chosen}`;
  useEffect(() => {
    if (chosenId) document.getElementById(chosenId)?.scrollIntoView({ block: 'nearest' });
  }, [chosenId]);
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && paths.length > 0) {
      event.preventDefault();
      setAt((chosen + step + paths.length) % paths.length);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      if (isCurrent) go(paths[chosen]);
      else if (typed.trim() !== '') setHurried(true);
    }
  };
  let next = 0;
  return (
    <>
      <TextInput
        data-autofocus
        label="Beginning of a name, id, serial number, initiator or address"
        role="combobox"
        aria-expanded={paths.length > 0}
        aria-controls={`${base}-list`}
        aria-activedescendant={chosenId}
        aria-autocomplete="list"
        autoComplete="off"
        maxLength={253}
        value={typed}
        onChange={({ currentTarget: { value } }) => {
          setTyped(value);
          setAt(0);
          setHurried(false);
        }}
        onKeyDown={press}
      />
      <output className="dimmed search-said">{said(isCurrent, groups)}</output>
      {read.error && <ProblemAlert error={read.error} />}
      <div id={`${base}-list`} role="listbox" aria-label="What was found" className="search-found">
        {groups.map(({ kind, items, more }) => (
          // biome-ignore lint/a11y/useSemanticElements: a group of options, not of form fields
          <div key={kind} role="group" aria-labelledby={`${base}-${kind}`}>
            <p className="nav-group" id={`${base}-${kind}`}>
              {KINDS[kind][0]}
              {more && ', and more'}
            </p>
            {items.map(item => {
              const n = next++;
              return (
                // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
                <div
                  key={item.id}
                  id={`${base}-${n}`}
                  role="option"
                  tabIndex={-1}
                  aria-selected={n === chosen}
                  className="search-option"
                  onClick={() => go(paths[n])}
                >
                  <span>{item.name}</span>
                  <span className="dimmed">{beside(kind, item)}</span>
                </div>
              );
            })}
          </div>
        ))}
      </div>
    </>
  );
}

/** What tells it from others of its name. */
const beside = (kind: Kind, { tenant, detail, state }: Item): string =>
  [kind === 'tenant' ? null : tenant, detail, state?.replaceAll('_', ' ')].filter(Boolean).join(', ');

function said(isCurrent: boolean, groups: readonly Group[]): string {
  if (!isCurrent) return '';
  const count = groups.reduce((sum, { items }) => sum + items.length, 0);
  return count === 0 ? 'Nothing that you may see fits' : `${count} found: arrows and Enter`;
}
