import { Anchor } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { StateBadge } from './state-badge';

export const To = ({ to, children }: { to: string; children: ReactNode }) => (
  <Anchor component={Link} to={to}>
    {children}
  </Anchor>
);

export const BackendLink = ({ tenant, backend }: { tenant: string; backend: string }) => (
  <To to={`/tenants/${tenant}/backends/${encodeURIComponent(backend)}`}>{backend}</To>
);

/** To the operation that is under way for an object. */
export const UnderWay = ({ operation }: { operation: string | null }) =>
  operation ? <To to={`/operations/${operation}`}>under way</To> : <>–</>;

/** What an audit or a backend says of an object; – when all is well. */
export const ConditionCell = ({ condition }: { condition: { type: string; message: string } | null }) =>
  condition ? (
    <span>
      <StateBadge state="warning" /> {condition.type.replaceAll('_', ' ')}: {condition.message}
    </span>
  ) : (
    <>–</>
  );

export const ConditionNotice = ({ condition }: { condition: { type: string; message: string } | null }) =>
  condition && (
    <div className="notice notice-warn" role="note">
      <p className="notice-title">{condition.type.replaceAll('_', ' ')}</p>
      {condition.message}
    </div>
  );
