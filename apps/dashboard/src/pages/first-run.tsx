import { Anchor } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'react-router';
import type { FirstRunReply } from '#admin/contract/first-run';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act } from '../parts/act';
import { Section } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { Yaml } from '../parts/yaml';
import { useNavigationTenant } from '../shell/tenant';

const EVERY_MS = 5_000;

/** What is open between a tenant and its first volume or bucket; nothing of one that has some, or where nobody wants to see it. */
export function FirstRun() {
  const tenant = useNavigationTenant();
  // A login of a driver is no event.
  const [isShown, setShown] = useState(true);
  const every = isShown ? EVERY_MS : undefined;
  // What the appliance itself has is shared with tenants, and is no volume.
  const enabled = tenant !== 'appliance';
  const read = useRead('/tenants/{tenant}/first-run', { params: { tenant } }, { every, enabled });
  const found = read.data?.data;
  // Whoever took the last step sees that it was the last one.
  const [begun, setBegun] = useState<string>();
  if (!found) return null;
  const isEmpty = found.steps.some(({ key, done }) => key === 'first' && !done);
  if (isEmpty && begun !== tenant) setBegun(tenant);
  const shows = !found.dismissed && (isEmpty || begun === tenant);
  if (shows !== isShown) setShown(shows);
  return shows ? <Checklist found={found} /> : null;
}

function Checklist({ found }: { found: FirstRunReply }) {
  const may = useMay();
  const { tenant, steps, manifests, done } = found;
  const open = steps.filter(step => !step.done).length;
  return (
    <Section
      title={`First steps of ${tenant}`}
      actions={
        may('admin') && (
          <Act
            small
            label="Do not show this again"
            title={`First steps of ${tenant}`}
            explain="Nobody of this tenant is shown them any more. The command line has them still: trivet first-run show."
            reason="optional"
            done="It is not shown any more"
            run={async (_, reason) => {
              await call('POST', '/tenants/{tenant}/first-run/dismiss', { params: { tenant }, body: { reason } });
              return undefined;
            }}
          />
        )
      }
    >
      <p role="status">{done ? 'All is done.' : `${steps.length - open} of ${steps.length} are done.`}</p>
      <ol className="first-steps">
        {steps.map(step => (
          <li key={step.key}>
            <StateBadge state={step.done ? 'done' : 'to_do'} /> <strong>{step.title}</strong>: {step.found}
            {!step.done && (
              <p>
                {step.todo}{' '}
                <Anchor component={Link} to={step.link}>
                  Go there
                </Anchor>
                , or <code>{step.command}</code>
              </p>
            )}
            {step.key === 'driver' && <Manifests manifests={manifests} />}
          </li>
        ))}
      </ol>
    </Section>
  );
}

/** Each folded up, so that the list stays one. */
const Manifests = ({ manifests }: Pick<FirstRunReply, 'manifests'>) =>
  manifests.map(({ name, title, apply, yaml, open }) => (
    <details key={name} className="manifest">
      <summary>{title}</summary>
      <Yaml text={yaml} name={name} />
      {open.length > 0 && (
        <>
          <p>What it cannot say:</p>
          <ul>
            {open.map(line => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </>
      )}
      <p>
        Then: <code>{apply}</code>
      </p>
    </details>
  ));
