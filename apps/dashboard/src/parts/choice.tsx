import { type SelectProps, TextInput } from '@mantine/core';
import { type ComponentType, useEffect, useState } from 'react';
import { useSay } from './toasts';

/** One of many, by a part of its name: what is typed, and where it goes. */
type ChoiceProps = SelectProps & { searchValue: string; onSearchChange: (typed: string) => void };

let loaded: ComponentType<SelectProps> | undefined;

/** As the list would show it. */
const labelOf = ({ data = [], value }: ChoiceProps): string =>
  data.flatMap(item => (typeof item === 'object' && 'value' in item && item.value === value ? [item.label] : []))[0] ??
  '';

/** A field that becomes the component library's list of choices when somebody goes there, and takes what is typed until then. */
export function Choice(props: ChoiceProps) {
  const say = useSay();
  const [List, setList] = useState(() => loaded);
  const [reached, setReached] = useState(false);
  useEffect(() => {
    if (!reached || loaded) return;
    import('./select').then(
      ({ Select }) => {
        loaded = Select;
        setList(() => Select);
      },
      () =>
        say('The choices did not load: the gateway was replaced by another release, or is away. Load the page anew.'),
    );
  }, [reached, say]);
  if (List) return <List {...props} autoFocus={reached} defaultDropdownOpened={reached} />;
  const { label, description, placeholder, size, className, mx, mt, searchValue, onSearchChange } = props;
  return (
    <TextInput
      {...{ label, description, placeholder, size, className, mx, mt }}
      role="combobox"
      aria-expanded={false}
      aria-haspopup="listbox"
      autoComplete="off"
      value={searchValue || labelOf(props)}
      onFocus={() => setReached(true)}
      onChange={event => onSearchChange(event.currentTarget.value)}
    />
  );
}
