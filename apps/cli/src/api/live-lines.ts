import type { WriteStream } from 'node:tty';

const CURSOR = { hide: '\u001b[?25l', show: '\u001b[?25h' };
const CLEAR_BELOW = '\u001b[J';

/** Lines that are written over at a terminal; elsewhere each that differs from the one before is written once. */
export class LiveLines {
  private height = 0;
  private last = '';

  constructor(private readonly out: Pick<WriteStream, 'write' | 'isTTY' | 'columns' | 'rows'>) {}

  show(lines: readonly string[]): void {
    if (!this.out.isTTY) {
      const text = lines.join('\n');
      if (text !== this.last) this.out.write(`${text}\n`);
      this.last = text;
      return;
    }
    // A line that is broken by the terminal, or one below its end, could not be written over.
    const columns = this.out.columns || 80;
    const shown = lines.slice(0, Math.max(1, (this.out.rows || 24) - 1)).map(line => cut(line, columns));
    const up = this.height > 0 ? `\u001b[${this.height}A\r` : CURSOR.hide;
    this.out.write(`${up}${CLEAR_BELOW}${shown.join('\n')}\n`);
    this.height = shown.length;
  }

  end(): void {
    if (this.out.isTTY && this.height > 0) this.out.write(CURSOR.show);
    this.height = 0;
  }
}

const cut = (line: string, columns: number): string => {
  const letters = [...line];
  return letters.length <= columns ? line : `${letters.slice(0, columns - 1).join('')}…`;
};
