import { Anchor, Button } from '@mantine/core';
import { Link } from 'react-router';
import { Page } from '../parts/page';
import { ProblemAlert } from '../parts/problem-alert';

export const NotFoundPage = () => (
  <Page title="There is no such page">
    <p>
      The address names nothing that this page knows. Go to the{' '}
      <Anchor component={Link} to="/">
        overview
      </Anchor>
      .
    </p>
  </Page>
);

/** A defect, or a script of another version that is gone after an upgrade. */
export function FailedPage({ error }: { error: unknown }) {
  return (
    <Page title="This page failed">
      <ProblemAlert error={error} />
      <div>
        <Button size="xs" onClick={() => window.location.reload()}>
          Load the page anew
        </Button>
      </div>
    </Page>
  );
}
