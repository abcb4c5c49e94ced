import { expect, it } from 'vitest';
import { Room } from '#operations/room';

const work = () => Promise.withResolvers<void>();

it('is full with so many, and lets the next in when one has ended', async () => {
  const room = new Room(2);
  const [one, two, three] = [work(), work(), work()];
  room.during(one.promise);
  expect(room.full).toBe(false);
  room.during(two.promise);
  expect(room.full).toBe(true);
  let entered = false;
  const next = room.free().then(() => {
    entered = true;
    room.during(three.promise);
  });
  await Promise.resolve();
  expect(entered).toBe(false);
  two.resolve();
  await next;
  expect(room.full).toBe(true);
});

it('makes nobody wait once it is open', async () => {
  const room = new Room(1);
  room.during(work().promise);
  const next = room.free();
  room.open();
  await next;
  expect(room.full).toBe(false);
});
