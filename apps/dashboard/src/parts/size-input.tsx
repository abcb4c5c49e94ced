import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { InputError } from '../api/problem';
import { textOf, useFieldErrors } from './act';
import { exactBytes, readBytes } from './amounts';

const FORM = 'a number and a unit: GiB and the like count by 1024, GB and the like by 1000';

interface SizeInputProps {
  name: string;
  label: string;
  defaultValue?: string;
  required?: boolean;
}

/** A size as people write it, with the bytes that will be sent. */
export function SizeInput({ name, label, defaultValue = '', required }: SizeInputProps) {
  const [text, setText] = useState(defaultValue);
  const refused = useFieldErrors(`/${name}`);
  const bytes = readBytes(text);
  return (
    <TextInput
      name={name}
      label={label}
      required={required}
      value={text}
      onChange={event => setText(event.currentTarget.value)}
      description={
        <output>
          {text.trim() === '' ? 'Such as 10 GiB' : bytes === undefined ? `Write ${FORM}` : exactBytes(bytes)}
        </output>
      }
      error={refused}
      autoComplete="off"
    />
  );
}

/** Exact bytes of such a field; undefined: it is empty. */
export function sizeOf(form: FormData, name: string): string | undefined {
  const text = textOf(form, name);
  if (text === undefined) return undefined;
  const bytes = readBytes(text);
  if (bytes === undefined) throw new InputError(name, `"${text}" is no size: write ${FORM}, such as 10 GiB`);
  return bytes;
}

const BLOCK = 512n;

/** Of a disk, which has whole blocks. */
export function diskSizeOf(form: FormData, name: string): string {
  const bytes = sizeOf(form, name);
  if (bytes === undefined) throw new InputError(name, 'a size is needed, such as 10 GiB');
  const rest = BigInt(bytes) % BLOCK;
  if (rest === 0n) return bytes;
  const next = String(BigInt(bytes) - rest + BLOCK);
  throw new InputError(name, `${exactBytes(bytes)} are no multiple of 512, the block size: the next one is ${next}`);
}
