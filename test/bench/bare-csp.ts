/**
 * The ceiling for GET volume: bare Fastify that answers the same JSON after one prepared SELECT on a pool of the same
 * size, and nothing else. Started as a process of its own, as the gateway is.
 */
import fastify from 'fastify';
import pg from 'pg';

const [, , databaseUrl, poolSize] = process.argv as string[];
const pool = new pg.Pool({ connectionString: databaseUrl!, max: Number(poolSize) });
const app = fastify();
app.get<{ Params: { id: string } }>('/containers/v1/volumes/:id', async request => {
  const { rows } = await pool.query({
    name: 'find',
    text: 'SELECT volume FROM bench_volume WHERE id = $1',
    values: [request.params.id],
  });
  return rows[0].volume;
});
await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${(app.server.address() as { port: number }).port}\n`);
