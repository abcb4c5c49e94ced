import { Button, Group, NumberInput, TextInput } from '@mantine/core';
import { useState } from 'react';
import { call, callFresh } from '../api/client';
import { useMay } from '../api/me';
import { InputError } from '../api/problem';
import type { ItemOf } from '../api/routes';
import { Act, textOf } from '../parts/act';
import { showDuration } from '../parts/amounts';
import { COMMON, ListPage } from '../parts/list-page';
import { Empty } from '../parts/page';
import { useTenant } from '../shell/tenant';

type Schedule = ItemOf<'/tenants/{tenant}/protection-templates'>['schedules'][number];

export function ProtectionPage() {
  const tenant = useTenant();
  const may = useMay();
  return (
    <ListPage
      title="Protection templates"
      path="/tenants/{tenant}/protection-templates"
      params={{ tenant }}
      intro="Schedules of snapshots. A volume has one of them or none."
      actions={may('admin') && <NewTemplate tenant={tenant} />}
      empty={<Empty what="There is no template." command="trivet protection list" />}
      columns={[
        { head: 'Name', cell: ({ name, shipped }) => `${name}${shipped ? ' (shipped)' : ''}` },
        {
          head: 'Snapshots',
          cell: ({ schedules }) => (
            <ul className="plain-list">
              {schedules.map(schedule => (
                <li key={schedule.name}>{words(schedule)}</li>
              ))}
            </ul>
          ),
        },
        { head: 'Volumes', cell: ({ volumes }) => volumes, number: true },
        COMMON.made,
        {
          head: 'Actions',
          cell: ({ id, name, shipped, schedules }) =>
            may('admin') &&
            !shipped && (
              <Group gap="xs">
                <ChangeTemplate tenant={tenant} id={id} name={name} schedules={schedules} />
                <Act
                  small
                  danger
                  label="Delete"
                  title={`Delete template ${name}`}
                  explain="Only a template that no volume has. Snapshots that it made stay."
                  confirmName={name}
                  done="The template was deleted"
                  run={async () => {
                    const params = { tenant, template: name };
                    await callFresh('DELETE', '/tenants/{tenant}/protection-templates/{template}', { id }, { params });
                    return undefined;
                  }}
                />
              </Group>
            ),
        },
      ]}
    />
  );
}

const words = ({ name, everyMinutes, atMinutes, retain }: Schedule): string =>
  `${name}: every ${showDuration(everyMinutes * 60_000)}${atMinutes > 0 ? ` at ${showDuration(atMinutes * 60_000)}` : ''}, the last ${retain} are kept`;

const MOST = 8;

function NewTemplate({ tenant }: { tenant: string }) {
  return (
    <Act
      label="New template"
      title="Make a protection template"
      verb="Make it"
      primary
      done="The template was made"
      run={async form => {
        const body = { name: textOf(form, 'name') ?? '', schedules: schedulesIn(form) };
        await call('POST', '/tenants/{tenant}/protection-templates', { params: { tenant }, body });
        return undefined;
      }}
    >
      <TextInput name="name" label="Name" required maxLength={100} autoComplete="off" data-autofocus />
      <Schedules before={[USUAL]} />
    </Act>
  );
}

interface ChangeProps {
  tenant: string;
  id: string;
  name: string;
  schedules: readonly Schedule[];
}

const ChangeTemplate = ({ tenant, id, name, schedules }: ChangeProps) => (
  <Act
    small
    label="Change"
    title={`Change template ${name}`}
    explain="Its volumes go by these schedules from now on. What a schedule made that is gone stays until somebody deletes it; of one that keeps fewer, the oldest are deleted."
    verb="Save"
    done="The template was changed"
    run={async form => {
      const params = { tenant, template: name };
      const { data, etag } = await call('GET', PATH, { params });
      if (data.id !== id || JSON.stringify(data.schedules) !== JSON.stringify(schedules))
        throw new InputError('schedules', 'it was changed meanwhile: close this, and look again');
      await call('PATCH', PATH, { params, body: { schedules: schedulesIn(form) } }, { etag });
      return undefined;
    }}
  >
    <Schedules before={schedules} />
  </Act>
);

const PATH = '/tenants/{tenant}/protection-templates/{template}';
const USUAL: Schedule = { name: 'hourly', everyMinutes: 60, atMinutes: 0, retain: 24 };

/** As many as the form has. */
function schedulesIn(form: FormData): Schedule[] {
  const found: Schedule[] = [];
  for (let at = 0; form.has(`name-${at}`); at++)
    found.push({
      name: textOf(form, `name-${at}`) ?? '',
      everyMinutes: Number(textOf(form, `every-${at}`)),
      atMinutes: Number(textOf(form, `at-${at}`) ?? 0),
      retain: Number(textOf(form, `retain-${at}`)),
    });
  return found;
}

function Schedules({ before }: { before: readonly Schedule[] }) {
  const [count, setCount] = useState(before.length);
  const shown = Array.from({ length: count }, (_, at) => before[at] ?? { ...USUAL, name: '' });
  return (
    <>
      {shown.map(({ name, everyMinutes, atMinutes, retain }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a schedule is its place in the form
        <fieldset key={at} className="fields">
          <legend>Schedule {at + 1}</legend>
          <TextInput name={`name-${at}`} label="Name" required pattern="[a-z0-9][a-z0-9\-]{0,31}" defaultValue={name} />
          <Group grow gap="xs">
            <NumberInput
              name={`every-${at}`}
              label="Every, minutes"
              min={1}
              max={525_600}
              defaultValue={everyMinutes}
              required
            />
            <NumberInput name={`at-${at}`} label="At, minutes" min={0} max={525_600} defaultValue={atMinutes} />
            <NumberInput
              name={`retain-${at}`}
              label="Keep the last"
              min={1}
              max={10_000}
              defaultValue={retain}
              required
            />
          </Group>
        </fieldset>
      ))}
      <Group gap="xs">
        <Button size="xs" variant="default" disabled={count >= MOST} onClick={() => setCount(count + 1)}>
          Another schedule
        </Button>
        {count > 1 && (
          <Button size="xs" variant="default" onClick={() => setCount(count - 1)}>
            Without the last one
          </Button>
        )}
      </Group>
    </>
  );
}
