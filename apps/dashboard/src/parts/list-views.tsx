import { Button, Checkbox, Fieldset, Group, TextInput } from '@mantine/core';
import { useLocation, useSearchParams } from 'react-router';
import type { ViewReply } from '#admin/contract/views';
import { call } from '../api/client';
import { useRead } from '../api/read';
import { Act, textOf } from './act';
import { Loaded } from './page';

/** Of no view: where in the list somebody is. */
const PLACE = 'cursor';

/** The page of the list, for whichever tenant. */
const listOf = (pathname: string): string => pathname.replace(/^\/(tenants\/[^/]+\/)?/, '');

/** Columns stand in the address, as filters do, so that a link shows another person the same; views are kept by the server. */
export function ListViews({ heads }: { heads: readonly string[] }) {
  const { pathname } = useLocation();
  const [search, setSearch] = useSearchParams();
  const list = listOf(pathname);
  const read = useRead('/session/views', { query: { list } });
  const asked = search.get('columns')?.split(',');
  const shown = heads.filter((head, at) => at === 0 || !asked || asked.includes(head));

  const show = (columns: readonly string[]): void =>
    setSearch(
      before => {
        const after = new URLSearchParams(before);
        if (columns.length === heads.length) after.delete('columns');
        else after.set('columns', columns.join(','));
        return after;
      },
      { replace: true },
    );
  const open = ({ query, columns }: ViewReply): void => {
    const after = new URLSearchParams(query);
    if (columns) after.set('columns', columns.join(','));
    setSearch(after);
  };
  const now = () => {
    const query = Object.fromEntries([...search].filter(([name]) => name !== PLACE && name !== 'columns'));
    return { query, columns: asked ? shown : null };
  };

  return (
    <section aria-label="Columns and views" className="fields">
      <Fieldset legend="Columns">
        <Group gap="sm">
          {heads.map((head, at) => (
            <Checkbox
              key={head}
              size="xs"
              label={head}
              checked={shown.includes(head)}
              // It leads to the row's own page.
              disabled={at === 0}
              onChange={({ currentTarget: { checked } }) =>
                show(heads.filter(other => (other === head ? checked : shown.includes(other))))
              }
            />
          ))}
        </Group>
      </Fieldset>
      <Fieldset legend="Views of this list that you have saved" mt="sm">
        <Loaded read={{ ...read, data: read.data?.data }}>
          {({ items }) => (
            <ul className="plain-list">
              {items.map(view => (
                <li key={view.id}>
                  <Group gap="xs">
                    <Button size="compact-xs" variant="default" onClick={() => open(view)}>
                      {view.name}
                    </Button>
                    <Rename view={view} />
                    <Act
                      small
                      danger
                      label="Delete"
                      title={`Delete the view ${view.name}`}
                      explain="The list itself stays as it is."
                      confirmName={view.name}
                      done="The view is deleted"
                      run={async () => {
                        await call('DELETE', '/session/views/{view}', { params: { view: view.id } });
                        return undefined;
                      }}
                    />
                  </Group>
                </li>
              ))}
            </ul>
          )}
        </Loaded>
        <Act
          small
          label="Save this one"
          title="Save what this list shows now"
          explain="Its filters, its order, the number of rows and the columns; for you alone."
          verb="Save it"
          done="The view is saved"
          run={async form => {
            const body = { list, name: textOf(form, 'name') ?? '', ...now() };
            await call('POST', '/session/views', { body });
            return undefined;
          }}
        >
          <TextInput name="name" label="Name" required maxLength={200} data-autofocus autoComplete="off" />
        </Act>
      </Fieldset>
    </section>
  );
}

const Rename = ({ view: { id, name } }: { view: ViewReply }) => (
  <Act
    small
    label="Rename"
    title={`Rename the view ${name}`}
    done="The view is renamed"
    run={async form => {
      const body = { name: textOf(form, 'name') ?? '' };
      await call('PATCH', '/session/views/{view}', { params: { view: id }, body });
      return undefined;
    }}
  >
    <TextInput
      name="name"
      label="Name"
      defaultValue={name}
      required
      maxLength={200}
      data-autofocus
      autoComplete="off"
    />
  </Act>
);
