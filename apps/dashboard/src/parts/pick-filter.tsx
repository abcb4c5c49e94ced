import { useDebouncedValue } from '@mantine/hooks';
import { useState } from 'react';
import { useRead } from '../api/read';
import { useTenant } from '../shell/tenant';
import { Choice } from './choice';

export type PickList = 'volumes' | 'hosts' | 'buckets';

/** What is listed and read alike, so that one stands for all to the compiler. */
type List = '/tenants/{tenant}/volumes';
type One = '/tenants/{tenant}/volumes/{volume}';
const ONE: Readonly<Record<PickList, string>> = { volumes: 'volume', hosts: 'host', buckets: 'bucket' };

const SETTLE_MS = 300;
const SHOWN = 20;

interface PickProps {
  label: string;
  list: PickList;
  /** Id, as the URL has it; '' when nothing is chosen. */
  value: string;
  onChange: (id: string) => void;
}

/** People know names, the API wants the id: one of those whose name has what is typed. */
export function PickFilter({ label, list, value, onChange }: PickProps) {
  const tenant = useTenant();
  const [typed, setTyped] = useState('');
  const [search] = useDebouncedValue(typed, SETTLE_MS);
  const one = ONE[list];
  const chosen = useRead(
    `/tenants/{tenant}/${list}/{${one}}` as One,
    { params: { tenant, [one]: value } as { tenant: string; volume: string } },
    { enabled: value !== '' },
  );
  const name = value === '' ? undefined : chosen.data?.data.id === value ? chosen.data.data.name : value;
  const found = useRead(`/tenants/{tenant}/${list}` as List, {
    params: { tenant },
    query: { limit: SHOWN, ...(search === '' || search === name ? {} : { search }) },
  });
  const choice = (found.data?.data.items ?? []).map(item => ({ value: item.id, label: item.name }));
  if (name !== undefined && !choice.some(item => item.value === value)) choice.unshift({ value, label: name });
  return (
    <Choice
      size="xs"
      label={label}
      placeholder="part of its name"
      searchable
      clearable
      clearButtonProps={{ 'aria-label': `Clear ${label.toLowerCase()}` }}
      nothingFoundMessage="none has this name"
      maxDropdownHeight={280}
      data={choice}
      // What was found fits already.
      filter={({ options }) => options}
      value={value === '' ? null : value}
      searchValue={typed}
      onSearchChange={setTyped}
      onChange={id => onChange(id ?? '')}
    />
  );
}
