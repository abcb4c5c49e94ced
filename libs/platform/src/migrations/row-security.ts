/** Rule: tenant isolation. Forced row security for tables of a tenant: the application role sees one tenant, the owner migrates (invariant T1). */
export const rowSecurity = (tables: readonly string[]): string =>
  tables
    .map(
      table => `GRANT SELECT, INSERT, UPDATE, DELETE ON trivet.${table} TO trivet_app;
   ALTER TABLE trivet.${table} ENABLE ROW LEVEL SECURITY;
   ALTER TABLE trivet.${table} FORCE ROW LEVEL SECURITY;
   CREATE POLICY tenant ON trivet.${table} TO trivet_app
     USING (tenant_id = trivet.current_tenant()) WITH CHECK (tenant_id = trivet.current_tenant());
   CREATE POLICY owner ON trivet.${table} TO trivet_owner USING (true) WITH CHECK (true);`,
    )
    .join('\n');
