import type { WriteStream } from 'node:tty';

const CURSOR = { hide: '\u001b[?25l', show: '\u001b[?25h' };
/** Of lines that are longer than the terminal is wide. */
const WRAP = { off: '\u001b[?7l', on: '\u001b[?7h' };
const CLEAR_BELOW = '\u001b[J';

export type LiveOut = Pick<WriteStream, 'write' | 'isTTY' | 'columns' | 'rows'>;

/** Lines that are written over at a terminal; elsewhere each that differs from the one before is written once. */
export class LiveLines {
  private height = 0;
  private last = '';
  private ended = false;

  constructor(private readonly out: LiveOut) {}

  /** @param foot lines below them that stay in sight, however many there are */
  show(lines: readonly string[], foot: readonly string[] = []): void {
    if (this.ended) return;
    if (!this.out.isTTY) {
      const text = [...lines, ...foot].join('\n');
      if (text !== this.last) this.out.write(`${text}\n`);
      this.last = text;
      return;
    }
    // A line that is broken by the terminal, or one below its end, could not be written over. How many columns a letter
    // takes is for the terminal to know, so it breaks none while these are written.
    const columns = this.out.columns || 80;
    const shown = inSight(lines, foot, Math.max(1, (this.out.rows || 24) - 1)).map(line => cut(line, columns));
    const from = this.height > 0 ? this.top() : CURSOR.hide;
    this.out.write(`${from}${CLEAR_BELOW}${WRAP.off}${shown.join('\n')}\n${WRAP.on}`);
    this.height = shown.length;
  }

  /**
   * Nothing is shown any more.
   *
   * @param whole what is left at a terminal, however long it is; what was shown last when absent
   */
  end(whole?: readonly string[]): void {
    if (this.ended) return;
    this.ended = true;
    if (!this.out.isTTY) return;
    const left = whole ? `${this.height > 0 ? this.top() : ''}${CLEAR_BELOW}${whole.join('\n')}\n` : '';
    const cursor = this.height > 0 ? CURSOR.show : '';
    if (left + cursor !== '') this.out.write(left + cursor);
  }

  private top(): string {
    return `\u001b[${this.height}A\r`;
  }
}

function inSight(lines: readonly string[], foot: readonly string[], rows: number): string[] {
  if (lines.length + foot.length <= rows) return [...lines, ...foot];
  const room = Math.max(0, rows - foot.length - 1);
  return [...lines.slice(0, room), `and ${lines.length - room} more lines`, ...foot].slice(-rows);
}

const cut = (line: string, columns: number): string => {
  const letters = [...line];
  return letters.length <= columns ? line : `${letters.slice(0, columns - 1).join('')}…`;
};
