import { Anchor, Button } from '@mantine/core';
import { Link } from 'react-router';
import { adviceOf, problemOf } from '../api/problem';
import { Copy } from './copy';

interface AlertProps {
  error: unknown;
  onRetry?: () => void;
  /** Where a code means something else than usual. */
  advice?: typeof adviceOf;
}

/** An error in the form that all of them have: what happened, what it means, what to do, the id to quote. */
export function ProblemAlert({ error, onRetry, advice = adviceOf }: AlertProps) {
  const problem = problemOf(error);
  const { means, todo } = advice(problem.code);
  const operation = problem.operation?.split('/').at(-1);
  return (
    <div role="alert" className="notice notice-bad">
      <p className="notice-title">{problem.title}</p>
      <dl className="advice">
        <dt>What happened</dt>
        <dd>{problem.detail}</dd>
        {problem.errors && problem.errors.length > 0 && (
          <>
            <dt>Fields</dt>
            <dd>
              <ul>
                {problem.errors.map(({ pointer, message }) => (
                  <li key={`${pointer} ${message}`}>
                    <code>{pointer}</code>: {message}
                  </li>
                ))}
              </ul>
            </dd>
          </>
        )}
        <dt>What it means</dt>
        <dd>{means}</dd>
        <dt>What to do</dt>
        <dd>
          {todo}{' '}
          {operation && (
            <Anchor component={Link} to={`/operations/${operation}`}>
              Show the operation
            </Anchor>
          )}
        </dd>
        {problem.instance !== '' && (
          <>
            <dt>Quote</dt>
            <dd>
              <Copy text={problem.instance} label="the id of this error" />
            </dd>
          </>
        )}
      </dl>
      {onRetry && (
        <Button size="xs" variant="default" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}
