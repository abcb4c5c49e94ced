import { type BackendKindReply, backendRoutes } from '#admin/contract/backends';
import type { Form } from '#admin/contract/form';
import type { ApiClient } from '../api/api-client.js';
import { EXIT } from '../api/api-error.js';
import { LauncherError } from '../home.js';
import { jsonIn } from '../json-in.js';

export interface Setting {
  name: string;
  needed: string;
  meaning: string;
}

export async function kindsOf(api: ApiClient): Promise<readonly BackendKindReply[]> {
  return (await api.call(backendRoutes.kinds)).reply.items;
}

/** What a form takes, each by its path: `pools[].name`. */
export function settingsOf(form: Form, at = ''): Setting[] {
  const { properties = {}, required = [] } = form;
  return Object.entries(properties).flatMap(([member, found]) => {
    if (found.readOnly) return [];
    const name = at === '' ? member : `${at}.${member}`;
    const { title, description, items, oneOf } = found;
    const choices = found.const === undefined ? '' : JSON.stringify(found.const);
    const meaning = [title, choices, description].filter(Boolean).join(': ');
    const own = { name, needed: required.includes(member) ? 'yes' : '', meaning };
    if (found.properties) return settingsOf(found, name);
    if (items?.properties) return [own, ...settingsOf(items, `${name}[]`)];
    if (oneOf) return [own, ...oneOf.flatMap(choice => settingsOf(choice, name))];
    return [own];
  });
}

/** Values as the field of the kind has them: text as it stands, all else in JSON. A field that it has not the API refuses. */
export async function configOf(
  api: ApiClient,
  kind: string,
  settings: Readonly<Record<string, string>>,
): Promise<Record<string, unknown>> {
  const form = (await kindsOf(api)).find(known => known.kind === kind)?.config as Form | undefined;
  const entries = Object.entries(settings).map(([name, text]) => {
    const { type = 'object' } = form?.properties?.[name] ?? { type: 'string' };
    return [name, type === 'string' ? text : parsed(name, text)] as const;
  });
  return Object.fromEntries(entries);
}

function parsed(name: string, text: string): unknown {
  const value = jsonIn<unknown>(text);
  if (value === undefined)
    throw new LauncherError(`--set ${name}: its value is written in JSON, and ${text} is none`, EXIT.data);
  return value;
}
