import { describe, expect, it } from 'vitest';
import { TerminalScreen } from '#test/support/terminal-screen';
import { LiveLines } from './live-lines.js';

describe('lines at a terminal', () => {
  it('are written over, whatever was there', () => {
    const screen = new TerminalScreen(10, 6);
    screen.write('$ watch\n');
    const live = new LiveLines(screen);
    live.show(['one', 'two', 'three']);
    live.show(['one', '2']);
    expect(screen.lines()).toEqual(['$ watch', 'one', '2']);
    expect(screen.hasCursor).toBe(false);
    live.end();
    expect(screen.lines()).toEqual(['$ watch', 'one', '2']);
    expect(screen).toMatchObject({ hasCursor: true, wraps: true });
  });

  it('are cut to its width, in whatever letters: none is broken in two', () => {
    const screen = new TerminalScreen(6, 8);
    const live = new LiveLines(screen);
    for (const state of ['creating', 'ready']) live.show(['卷卷卷卷', 'abcdefgh', state]);
    // The last of wide letters has no column left; what is not cut by letters is cut by the terminal.
    expect(screen.lines()).toEqual(['卷卷卷', 'abcde…', 'ready']);
  });

  it('say how many have no room, and keep what stands below them in sight', () => {
    const screen = new TerminalScreen(40, 5);
    const live = new LiveLines(screen);
    const lines = Array.from({ length: 9 }, (_, n) => `row ${n}`);
    for (const state of ['live', 'connection lost']) live.show(lines, ['the first 9; --limit shows more', state]);
    expect(screen.lines()).toEqual(['row 0', 'and 8 more lines', 'the first 9; --limit shows more', 'connection lost']);
    expect(screen.scrolled).toEqual([]);
  });

  it.each([2, 3])('fit a terminal of %i lines', rows => {
    const screen = new TerminalScreen(40, rows);
    const live = new LiveLines(screen);
    for (const state of ['live', 'lost']) live.show(['a', 'b', 'c'], [state]);
    expect(screen.lines().at(-1)).toBe('lost');
  });

  it('stay whole at the end, however many', () => {
    const screen = new TerminalScreen(40, 4);
    const live = new LiveLines(screen);
    const lines = Array.from({ length: 6 }, (_, n) => `row ${n}`);
    live.show(lines, ['live']);
    live.end(lines);
    expect([...screen.scrolled, ...screen.lines()]).toEqual(lines);
    expect(screen.hasCursor).toBe(true);
  });

  it('are none after the end', () => {
    const screen = new TerminalScreen(40, 4);
    const live = new LiveLines(screen);
    live.show(['before']);
    live.end();
    live.show(['after']);
    live.end();
    expect(screen.lines()).toEqual(['before']);
    expect(screen.hasCursor).toBe(true);
  });
});
