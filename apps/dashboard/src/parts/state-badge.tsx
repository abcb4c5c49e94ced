type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'quiet';

/** A word, a colour and a mark: none of them is needed to know the others. */
const TONES: Readonly<Record<string, Tone>> = {
  ok: 'good',
  up: 'good',
  active: 'good',
  ready: 'good',
  applied: 'good',
  succeeded: 'good',
  sent: 'good',
  indexed: 'good',
  done: 'good',
  open: 'good',
  pending: 'busy',
  running: 'busy',
  creating: 'busy',
  granting: 'busy',
  wanted: 'busy',
  current: 'busy',
  deleting: 'warn',
  revoking: 'warn',
  removing: 'warn',
  draining: 'warn',
  degraded: 'warn',
  cordoned: 'warn',
  suspended: 'warn',
  paused: 'warn',
  stale: 'warn',
  late: 'warn',
  silent: 'warn',
  warning: 'warn',
  cancelled: 'quiet',
  absent: 'quiet',
  unknown: 'quiet',
  waiting: 'quiet',
  binned: 'quiet',
  disabled: 'quiet',
  revoked: 'quiet',
  down: 'bad',
  lost: 'bad',
  failed: 'bad',
  given_up: 'bad',
  broken: 'bad',
  error: 'bad',
  closed: 'bad',
  needs_attention: 'bad',
};
const MARKS: Readonly<Record<Tone, string>> = { good: '✓', busy: '●', warn: '▲', bad: '✕', quiet: '○' };

export function StateBadge({ state, title }: { state: string; title?: string }) {
  const tone = TONES[state] ?? 'quiet';
  return (
    <span className={`badge badge-${tone}`} title={title}>
      <span aria-hidden="true">{MARKS[tone]}</span> {state.replaceAll('_', ' ')}
    </span>
  );
}
