import { Button } from '@mantine/core';
import { useLive } from '../api/live';

/** Whether the page follows what happens; it can be held still to read something in peace. */
export function LiveControl() {
  const { state, paused, missed, setPaused } = useLive();
  const text = paused
    ? `Paused${missed > 0 ? `, ${missed} new` : ''}`
    : { live: 'Live', connecting: 'Connecting', lost: 'Connection lost, retrying' }[state];
  const tone = paused ? 'warn' : { live: 'good', connecting: 'quiet', lost: 'bad' }[state];
  return (
    <>
      <output className={`live-state badge badge-${tone}`} aria-live="polite">
        <span aria-hidden="true">{paused ? 'Ⅱ' : state === 'live' ? '●' : state === 'lost' ? '✕' : '○'}</span>
        <span>{text}</span>
      </output>
      <Button variant="default" size="compact-sm" onClick={() => setPaused(!paused)}>
        {paused ? 'Resume' : 'Pause'}
      </Button>
    </>
  );
}
