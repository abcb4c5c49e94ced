import { describe, expect, it } from 'vitest';
import { StreamParser } from './event-stream';

const TEXT =
  ': hello\n\nid: 7-1\nevent: operation\ndata: {"a":1}\ndata: 2\n\nevent: reset\r\n\r\ndata:no space\n\nid: 8\ndata: rest';

const read = (pieces: Iterable<string>) => {
  const parser = new StreamParser();
  return [...pieces].flatMap(piece => [...parser.push(piece)]);
};

describe('the parser of event streams', () => {
  const whole = [
    { id: '7-1', event: 'operation', data: '{"a":1}\n2' },
    { id: '7-1', event: 'reset', data: '' },
    { id: '7-1', event: 'message', data: 'no space' },
  ];

  it('gives messages that are whole, with the last id', () => {
    expect(read([TEXT])).toEqual(whole);
  });

  it('gives the same however the text is cut', () => {
    expect(read(TEXT)).toEqual(whole);
    for (let size = 2; size < 40; size++) {
      const pieces = TEXT.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g'))!;
      expect(read(pieces), `pieces of ${size}`).toEqual(whole);
    }
  });
});
