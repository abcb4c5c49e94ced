import { invalid } from '#platform/errors';

/** Azure's rules for the name of a container. Throws `invalid_argument` that says which rule is broken. */
export function checkContainerName(name: string, field: string): void {
  const problem = nameProblem(name);
  if (problem !== undefined) throw invalid(field, problem);
}

function nameProblem(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if (name.length < 3 || name.length > 63) return `expected 3 to 63 characters, got ${name.length}`;
  if (!/^[a-z0-9-]+$/.test(name)) return 'only lower-case letters a-z, digits and dashes are allowed in a container';
  if (!/^[a-z0-9].*[a-z0-9]$/.test(name)) return 'must begin and end with a letter or digit';
  if (name.includes('--')) return 'two dashes must not stand together in a container';
  return undefined;
}
