import {
  Button,
  Checkbox,
  Fieldset,
  Group,
  NativeSelect,
  PasswordInput,
  Stack,
  Textarea,
  TextInput,
} from '@mantine/core';
import { useRef, useState } from 'react';
import type { Form } from '#admin/contract/form';
import { useFieldErrors } from './act';
import { below, isOf, membersOf } from './schema-form';

interface FieldProps {
  form: Form;
  /** Name of its input, and where a refusal finds it. */
  at: string;
  /** What is there now. */
  value?: unknown;
}

/** Inputs for the members of an object; what they say is read by `filledIn` with the same form and name. */
export const SchemaFields = ({ form, at, value, optional }: FieldProps & { optional?: boolean }) =>
  membersOf(form).map(({ name, form: member, required }) => (
    <Field
      key={name}
      form={{ title: name, ...member }}
      at={below(at, name)}
      value={(value as Record<string, unknown> | undefined)?.[name]}
      required={required && !optional}
    />
  ));

function Field(props: FieldProps & { required: boolean }) {
  const { form } = props;
  if (form.oneOf) return <Choice {...props} choices={form.oneOf} />;
  if (form.type === 'array' && form.items?.type === 'object') return <Rows {...props} row={form.items} />;
  return <Input {...props} />;
}

function Input({ form, at, value, required }: FieldProps & { required: boolean }) {
  const error = useFieldErrors(at);
  const { title: label, description, type, format, maxLength, examples } = form;
  const [example] = [examples?.[0]].flat();
  const placeholder =
    typeof form.default === 'string' ? form.default : example === undefined ? undefined : `such as ${example}`;
  const common = { name: at, label, description, error, required, maxLength, autoComplete: 'off', spellCheck: false };
  if (type === 'boolean')
    return <Checkbox name={at} label={label} description={description} defaultChecked={value === true} error={error} />;
  if (type === 'array')
    return (
      <Textarea
        {...common}
        placeholder={placeholder}
        description={[description, 'One a line'].filter(Boolean).join('. ')}
        defaultValue={Array.isArray(value) ? value.join('\n') : ''}
        autosize
        minRows={1}
      />
    );
  if (format === 'password')
    return (
      <PasswordInput
        {...common}
        autoComplete="new-password"
        visibilityToggleButtonProps={{ 'aria-label': `Show the ${String(label).toLowerCase()}` }}
      />
    );
  return (
    <TextInput
      {...common}
      type={type === 'number' || type === 'integer' ? 'number' : 'text'}
      inputMode={format === 'uri' ? 'url' : undefined}
      placeholder={placeholder}
      defaultValue={value === undefined ? '' : String(value)}
    />
  );
}

function Choice({ form, at, value, choices }: FieldProps & { choices: readonly Form[] }) {
  const [chosen, choose] = useState(() =>
    Math.max(
      0,
      choices.findIndex(choice => isOf(choice, value)),
    ),
  );
  return (
    <>
      <NativeSelect
        name={at}
        label={form.title}
        description={form.description}
        value={chosen}
        onChange={event => choose(Number(event.currentTarget.value))}
        data={choices.map(({ title }, n) => ({ value: String(n), label: title ?? String(n) }))}
      />
      <SchemaFields key={chosen} form={choices[chosen]!} at={at} value={value} />
    </>
  );
}

/** Objects of one form: as many as somebody wants, one at the beginning. */
function Rows({ form, at, value, row }: FieldProps & { row: Form }) {
  const error = useFieldErrors(at, { exactly: true });
  const what = row.title ?? form.title ?? '';
  const next = useRef(0);
  const fresh = (item?: unknown) => ({ key: next.current++, item });
  const [rows, setRows] = useState(() => (Array.isArray(value) ? value : [undefined]).map(fresh));
  return (
    <Stack gap="xs">
      {rows.map(({ key, item }, n) => (
        <Fieldset key={key} legend={`${what} ${n + 1}`}>
          <Stack gap="xs">
            <input type="hidden" name={below(at, n)} />
            <SchemaFields form={row} at={below(at, n)} value={item} />
            <Group justify="flex-end">
              <Button
                variant="default"
                size="compact-xs"
                aria-label={`Remove ${what} ${n + 1}`}
                onClick={() => setRows(before => before.filter(other => other.key !== key))}
              >
                Remove
              </Button>
            </Group>
          </Stack>
        </Fieldset>
      ))}
      {error && (
        <p className="field-error" role="note">
          {error}
        </p>
      )}
      <Group>
        <Button variant="default" size="compact-xs" onClick={() => setRows(before => [...before, fresh()])}>
          Add a {what.toLowerCase()}
        </Button>
      </Group>
    </Stack>
  );
}
