-- Who has a place soon begins. Where the lines of a class (tenant and backend) together have more places than workers have room for and half
-- as many again, each has as many as make that number: what is rung would else stand behind the 64th of every other tenant. A line that has
-- fewer is not touched; who has a number beyond the cap and has not begun gives it back, and his ring finds nothing to run.
-- The greatest level below its line is where they meet. Where they have fewer, the cap doubles from round to round until it is the tenant's own. One worker's look a round; a cap that nobody
-- looked after for three of them is none.
-- $1 tenant cap $2 round in ms $3 a worker that was silent for so many ms has no room; answers with the caps that it set
WITH room AS (
  SELECT ceil(1.5 * sum(concurrency)) AS n FROM trivet.worker WHERE seen_at > now() - $3 * interval '1 ms'
), line AS MATERIALIZED (
  SELECT class, count(*) AS n FROM trivet.operation WHERE place IS NOT NULL GROUP BY tenant_id, backend_id, class
), filled AS (
  -- From the shortest line on: how many places those before it leave to each of it and the longer ones.
  SELECT line.class, line.n,
         (room.n - sum(line.n) OVER lines + line.n) / (count(*) OVER (PARTITION BY line.class) - row_number() OVER lines + 1) AS level
    FROM line, room
  WINDOW lines AS (PARTITION BY line.class ORDER BY line.n ROWS UNBOUNDED PRECEDING)
), before AS MATERIALIZED (
  SELECT class, cap, until FROM trivet.fair_cap WHERE until > now()
), next AS MATERIALIZED (
  SELECT class, coalesce(full_at, before.cap * 2) AS cap
    FROM (SELECT class, ceil(max(level) FILTER (WHERE n > level))::int AS full_at
            FROM filled GROUP BY class) AS class
    LEFT JOIN before USING (class)
   WHERE before.until IS NULL OR before.until <= now() + 2.5 * $2 * interval '1 ms'
), told AS (
  INSERT INTO trivet.fair_cap AS f (class, cap, until)
  SELECT class, cap, now() + 3 * $2 * interval '1 ms' FROM next WHERE cap < $1::int ORDER BY class
      ON CONFLICT (class) DO UPDATE SET cap = excluded.cap, until = excluded.until
  RETURNING class, cap
), beyond AS MATERIALIZED (
  SELECT o.tenant_id, o.id
    FROM trivet.operation o JOIN next ON next.class = o.class
   WHERE o.place IS NOT NULL AND o.place > next.cap AND o.state = 'pending'
     FOR UPDATE OF o SKIP LOCKED
), given_back AS (
  UPDATE trivet.operation o SET place = NULL
    FROM beyond
   WHERE o.id = ANY (ARRAY(SELECT id FROM beyond)) AND o.id = beyond.id AND (o.tenant_id = beyond.tenant_id) IS TRUE
)
SELECT class, cap FROM told
