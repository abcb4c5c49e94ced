import type { ReactNode } from 'react';
import { MARKS } from './amounts';

export interface Bar {
  key: string;
  value: number;
  /** Part of the value that is drawn in the colour of trouble. */
  bad?: number;
  /** On hover. */
  title: string;
}

const WIDTH = 600;

/** Small bars beside each other; `label` says in words what they show. */
export function TrendBars({ bars, label, height = 64 }: { bars: readonly Bar[]; label: string; height?: number }) {
  const most = Math.max(1, ...bars.map(({ value }) => value));
  const step = WIDTH / Math.max(1, bars.length);
  const tall = (value: number): number => (value === 0 ? 0 : Math.max(1.5, (value / most) * (height - 2)));
  return (
    <svg
      className="trend"
      viewBox={`0 0 ${WIDTH} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
      height={height}
    >
      <line x1={0} x2={WIDTH} y1={height - 0.5} y2={height - 0.5} className="trend-base" />
      {bars.map(({ key, value, bad = 0, title }, index) => (
        <g key={key}>
          <title>{title}</title>
          <rect
            x={index * step + step * 0.1}
            width={step * 0.8}
            y={height - 1 - tall(value)}
            height={tall(value)}
            className="trend-bar"
          />
          {bad > 0 && (
            <rect
              x={index * step + step * 0.1}
              width={step * 0.8}
              y={height - 1 - tall(bad)}
              height={tall(bad)}
              className="trend-bad"
            />
          )}
        </g>
      ))}
    </svg>
  );
}

/** How full something is, with the words for it. */
export function Meter({ share, label, children }: { share: number; label: string; children?: ReactNode }) {
  const tone = share > MARKS.full ? 'meter-bad' : share > MARKS.filling ? 'meter-warn' : 'meter-good';
  const percent = Math.round(share * 100);
  return (
    <div className="meter-line">
      {/* biome-ignore lint/a11y/useSemanticElements: browsers draw a meter element in colours that nothing can change */}
      <div
        className={`meter ${tone}`}
        role="meter"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent}
        aria-label={label}
      >
        <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
          <rect width={Math.min(100, share * 100)} height={8} />
        </svg>
      </div>
      {children && <div className="meter-text">{children}</div>}
    </div>
  );
}
