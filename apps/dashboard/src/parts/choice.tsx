import { type SelectProps, TextInput } from '@mantine/core';
import { type ComponentType, useEffect, useRef, useState } from 'react';
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
  // Who has gone on meanwhile is not called back.
  const focused = useRef(false);
  const early = useRef<string>(undefined);
  useEffect(() => {
    if (!reached || loaded) return;
    import('./select').then(
      ({ Select }) => {
        loaded = Select;
        setList(() => Select);
      },
      () => {
        // Whoever comes here again asks for it again.
        setReached(false);
        say('The choices did not load: the gateway was replaced by another release, or is away. Load the page anew.');
      },
    );
  }, [reached, say]);
  const { label, description, placeholder, size, className, mx, mt, searchValue, onSearchChange, onFocus } = props;
  const again = useRef(onSearchChange);
  again.current = onSearchChange;
  useEffect(() => {
    // Its first act is to show what is chosen, in place of what was typed before it came.
    if (List && early.current !== undefined) again.current(early.current);
    early.current = undefined;
  }, [List]);
  if (List) return <List {...props} autoFocus={focused.current} defaultDropdownOpened={focused.current} />;
  return (
    <TextInput
      {...{ label, description, placeholder, size, className, mx, mt }}
      role="combobox"
      aria-expanded={false}
      aria-haspopup="listbox"
      autoComplete="off"
      value={searchValue || labelOf(props)}
      onFocus={event => {
        focused.current = true;
        setReached(true);
        onFocus?.(event);
      }}
      onBlur={() => {
        focused.current = false;
      }}
      onChange={event => {
        early.current = event.currentTarget.value;
        onSearchChange(early.current);
      }}
    />
  );
}
