-- The model of the suite.
ALTER TABLE lst ADD CHECK (item - '{k1,k2,l}'::text[] = '{}'
    AND jsonb_typeof(item -> 'k1') = 'number' AND (item -> 'k1')::numeric BETWEEN 0 AND 4294967295
    AND jsonb_typeof(item -> 'k2') = 'string'
    AND coalesce(jsonb_typeof(item -> 'l'), 'string') = 'string'
    AND name = (item ->> 'k1') || ',' || (item ->> 'k2'));
ALTER TABLE usr_lst ADD CHECK (entry - '{k,l}'::text[] = '{}'
    AND jsonb_typeof(entry -> 'k') = 'number' AND k BETWEEN 0 AND 4294967295
    AND (entry -> 'k')::numeric = k
    AND coalesce(jsonb_typeof(entry -> 'l'), 'string') = 'string');
