import type { Form } from '#admin/contract/form';
import { textOf } from './act';

/** Name of the input for a member: the JSON pointer that a refusal names it by, without its /body. */
export const below = (at: string, member: string | number): string => `${at}/${member}`;

/** What people fill in: the rest is fixed by the form, or written by Trivet. */
export const membersOf = ({ properties = {}, required = [] }: Form) =>
  Object.entries(properties)
    .filter(([, form]) => form.const === undefined && form.readOnly !== true)
    .map(([name, form]) => ({ name, form, required: required.includes(name) }));

const constantsOf = ({ properties = {} }: Form): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, form]) => (form.const === undefined ? [] : [[name, form.const]])),
  );

/** Whether the value has the constants of this choice. */
export const isOf = (choice: Form, value: unknown): boolean =>
  Object.entries(constantsOf(choice)).every(([name, wanted]) => (value as Record<string, unknown>)?.[name] === wanted);

/** What the inputs of a form say, as the API takes it; undefined: it was left out. */
export function filledIn(form: Form, sent: FormData, at: string): unknown {
  if (form.oneOf) {
    const choice = form.oneOf[Number(sent.get(at))];
    return choice && filledIn(choice, sent, at);
  }
  switch (form.type) {
    case 'object': {
      const members = membersOf(form).map(({ name, form: member }) => [name, filledIn(member, sent, below(at, name))]);
      return { ...constantsOf(form), ...Object.fromEntries(members.filter(([, value]) => value !== undefined)) };
    }
    case 'array': {
      const items = form.items?.type === 'object' ? rowsOf(form.items, sent, at) : linesOf(sent, at);
      return items.length === 0 && form.default !== undefined ? undefined : items;
    }
    case 'boolean':
      return sent.has(at);
    case 'number':
    case 'integer': {
      const text = textOf(sent, at);
      return text === undefined ? undefined : Number(text);
    }
    default:
      return textOf(sent, at);
  }
}

function rowsOf(row: Form, sent: FormData, at: string): unknown[] {
  const rows: unknown[] = [];
  while (sent.has(below(at, rows.length))) rows.push(filledIn(row, sent, below(at, rows.length)));
  return rows;
}

const linesOf = (sent: FormData, at: string): string[] =>
  (textOf(sent, at) ?? '')
    .split(/[\n,]/)
    .map(line => line.trim())
    .filter(line => line !== '');
