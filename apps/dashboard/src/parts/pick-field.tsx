import { useState } from 'react';
import { PickFilter, type PickList } from './pick-filter';

/** As a filter picks one by its name, in a form: `name` has its id. */
export function PickField({ name, label, list }: { name: string; label: string; list: PickList }) {
  const [id, setId] = useState('');
  return (
    <>
      <PickFilter label={label} list={list} value={id} onChange={setId} />
      <input type="hidden" name={name} value={id} />
    </>
  );
}
