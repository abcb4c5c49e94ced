/** A terminal for tests: what stands on it after the escapes that this project writes. It refuses others. */
export class TerminalScreen {
  readonly isTTY = true as const;
  hasCursor = true;
  /** A line that is too long goes on in the next one. */
  wraps = true;
  /** Lines that went out at its top. */
  readonly scrolled: string[] = [];
  /** A cell each; the second one of a wide letter is empty. */
  private grid: string[][];
  private row = 0;
  private column = 0;

  constructor(
    readonly columns: number,
    readonly rows: number,
  ) {
    this.grid = Array.from({ length: rows }, () => []);
  }

  readonly write = (text: string): boolean => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it reads
    for (const [part, count, verb] of text.matchAll(/\u001b\[([?\d]*)([A-Za-z])|\r|\n|./gsu)) {
      if (verb !== undefined) this.escape(verb, count!);
      else if (part === '\r') this.column = 0;
      else if (part === '\n') this.newLine();
      else this.letter(part);
    }
    return true;
  };

  /** Without the empty ones below the last. */
  lines(): string[] {
    return this.grid.slice(0, this.grid.findLastIndex(cells => cells.length > 0) + 1).map(cells => cells.join(''));
  }

  private escape(verb: string, count: string): void {
    if (verb === 'A') this.row = Math.max(0, this.row - Number(count || 1));
    else if (verb === 'J' && count === '') {
      this.grid[this.row]!.length = Math.min(this.column, this.grid[this.row]!.length);
      for (let row = this.row + 1; row < this.rows; row++) this.grid[row] = [];
    } else if (count === '?25') this.hasCursor = verb === 'h';
    else if (count === '?7') this.wraps = verb === 'h';
    else throw new Error(`this screen does not know ESC [ ${count} ${verb}`);
  }

  private newLine(): void {
    this.column = 0;
    if (this.row < this.rows - 1) this.row++;
    else {
      this.scrolled.push(this.grid.shift()!.join(''));
      this.grid.push([]);
    }
  }

  private letter(letter: string): void {
    const width = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]/u.test(letter) ? 2 : 1;
    if (this.column + width > this.columns) {
      if (this.wraps) this.newLine();
      else this.column = this.columns - width;
    }
    const cells = this.grid[this.row]!;
    while (cells.length < this.column) cells.push(' ');
    // What is written over one half of a wide letter takes the other with it.
    if (cells[this.column] === '' && this.column > 0) cells[this.column - 1] = ' ';
    cells.splice(this.column, width, letter, ...(width === 2 ? [''] : []));
    this.column += width;
  }
}
