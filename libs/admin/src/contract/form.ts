/** JSON Schema, as far as the API's forms use it. */
export interface Form {
  type?: string;
  title?: string;
  description?: string;
  properties?: Readonly<Record<string, Form>>;
  required?: readonly string[];
  items?: Form;
  /** Objects, each with a `const` property that tells it from the others. */
  oneOf?: readonly Form[];
  const?: unknown;
  default?: unknown;
  examples?: readonly unknown[];
  format?: string;
  maxLength?: number;
  readOnly?: boolean;
}
