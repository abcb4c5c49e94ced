import { z } from 'zod';

const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};
const FORMATS: Readonly<Record<string, string>> = {
  url: 'an address, such as https://storage.example.net',
  uuid: 'an id, which is a UUID',
  datetime: 'a time as of RFC 3339, such as 2026-01-02T03:04:05Z',
};

/** What a form has against a value, in our words: those of the library are about its own types. */
export function formWords(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'required' : `expected ${TYPES[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `expected ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
    case 'invalid_format':
      return `expected ${FORMATS[issue.format] ?? `the form of ${issue.format}`}`;
    case 'too_small':
      return bound('at least', 'more than', Number(issue.minimum), issue);
    case 'too_big':
      return bound('at most', 'less than', Number(issue.maximum), issue);
    case 'not_multiple_of':
      return `expected a multiple of ${issue.divisor}`;
    case 'unrecognized_keys':
      return `there is no such field: ${issue.keys.join(', ')}`;
    case 'invalid_union':
      return 'it has none of the forms that it may have';
    case 'invalid_key':
      return 'a name in it has not the form that it may have';
    default:
      return 'it has not the form that it may have';
  }
}

const UNITS: Readonly<Record<string, string>> = {
  string: ' characters',
  array: ' entries',
  set: ' entries',
  file: ' bytes',
};

function bound(
  including: string,
  excluding: string,
  limit: number,
  { origin, inclusive }: { origin: string; inclusive?: boolean | undefined },
): string {
  return `expected ${inclusive === false ? excluding : including} ${limit}${UNITS[origin] ?? ''}`;
}

z.config({ localeError: formWords });
