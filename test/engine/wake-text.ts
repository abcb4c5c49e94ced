import type { TestDatabase } from '#test/support/database';

/** What trivet.pass_on runs once somebody waits, with its parameters by number. */
export async function wakeText(database: TestDatabase): Promise<string> {
  const [wake] = await database.query<{ source: string; names: string[]; types: string[] }>(
    `SELECT prosrc AS source, proargnames AS names,
            ARRAY(SELECT format_type(type, NULL) FROM unnest(proargtypes) AS type) AS types
       FROM pg_proc WHERE oid = 'trivet.pass_on'::regproc`,
  );
  const { source, names, types } = wake!;
  const query = /RETURN QUERY(.*);\s*END/s.exec(source)![1]!;
  return types.reduce((text, type, n) => text.replaceAll(names[n]!, `$${n + 1}::${type}`), query);
}
