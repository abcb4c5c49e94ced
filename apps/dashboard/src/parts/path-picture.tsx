import { useMediaQuery } from '@mantine/hooks';
import { Link } from 'react-router';

export interface PathNode {
  kind: string;
  name: string;
  /** Undefined: it leads nowhere else. */
  to?: string;
}

/** Boxes of each column, in CSS pixels: the picture is never scaled, so that its letters stay as large as others. */
const BOX = { width: 168, height: 46 };
const GAP = { across: 44, along: 12 };
/** As many letters as a box is wide. */
const LETTERS = 21;

interface Placed extends PathNode {
  x: number;
  y: number;
}

/** Columns from left to right, or rows from above on a narrow page; what stands in one is centred beside the others. */
function place(columns: readonly (readonly PathNode[])[], isNarrow: boolean) {
  const most = Math.max(...columns.map(({ length }) => length));
  const step = BOX.height + GAP.along;
  if (!isNarrow) {
    const height = most * step - GAP.along;
    const placed = columns.map((nodes, column) => {
      const top = (height - (nodes.length * step - GAP.along)) / 2;
      return nodes.map((node, row) => ({ ...node, x: column * (BOX.width + GAP.across), y: top + row * step }));
    });
    return { placed, width: columns.length * (BOX.width + GAP.across) - GAP.across, height };
  }
  let y = 0;
  const placed = columns.map(nodes => {
    const rows = nodes.map((node, row) => ({ ...node, x: 0, y: y + row * step }));
    y += nodes.length * step - GAP.along + GAP.across;
    return rows;
  });
  return { placed, width: BOX.width, height: y - GAP.across };
}

/** From the middle of a side to the middle of the next one's. */
const line = (from: Placed, to: Placed, isNarrow: boolean): string =>
  isNarrow
    ? `M${from.x + BOX.width / 2} ${from.y + BOX.height}V${to.y}`
    : `M${from.x + BOX.width} ${from.y + BOX.height / 2}C${from.x + BOX.width + GAP.across / 2} ${from.y + BOX.height / 2} ${to.x - GAP.across / 2} ${to.y + BOX.height / 2} ${to.x} ${to.y + BOX.height / 2}`;

/** What leads to what. `said` is the same in words. */
export function PathPicture({ columns, said }: { columns: readonly (readonly PathNode[])[]; said: string }) {
  const isNarrow = useMediaQuery('(max-width: 62em)', false, { getInitialValueInEffect: false });
  const { placed, width, height } = place(columns, isNarrow);
  // On a narrow page the boxes of a row stand below each other, and what leads on begins at the last.
  const from = (nodes: readonly Placed[]): readonly Placed[] => (isNarrow ? nodes.slice(-1) : nodes);
  return (
    <figure className="path-picture">
      {/* biome-ignore lint/a11y/useSemanticElements: a group of links in a picture, not of form fields */}
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={said}>
        {placed
          .slice(1)
          .map((nodes, column) =>
            from(placed[column]!).flatMap(before =>
              nodes
                .slice(0, 1)
                .map(after => (
                  <path key={`${before.x} ${before.y}`} className="path-line" d={line(before, after, isNarrow)} />
                )),
            ),
          )}
        {placed.flat().map(node => (
          <Box key={`${node.x} ${node.y}`} node={node} />
        ))}
      </svg>
      <figcaption className="dimmed">{said}</figcaption>
    </figure>
  );
}

function Box({ node: { kind, name, to, x, y } }: { node: Placed }) {
  const letters = [...name];
  const isLong = letters.length > LETTERS;
  const box = (
    <>
      {isLong && <title>{`${kind} ${name}`}</title>}
      <rect x={x + 1} y={y + 1} width={BOX.width - 2} height={BOX.height - 2} rx={4} />
      <text>
        <tspan className="path-kind" x={x + 10} y={y + 17}>
          {kind}
        </tspan>{' '}
        <tspan x={x + 10} y={y + 35}>
          {isLong ? `${letters.slice(0, LETTERS - 1).join('')}…` : name}
        </tspan>
      </text>
    </>
  );
  return to === undefined ? <g>{box}</g> : <Link to={to}>{box}</Link>;
}
