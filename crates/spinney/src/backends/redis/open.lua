-- Makes the store where it does not exist and may be made, and refuses what is none.
-- ARGV: format, an id for a new store, run of the server, whether it may be made.
local kinds = { 'hash', 'zset', 'hash', 'hash', 'zset', 'zset', 'zset', 'list', 'hash', 'hash' }
local has_some = false
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'none' and kind ~= kinds[i] then return { 'foreign', key } end
  if i > 1 and kind ~= 'none' then has_some = key end
end
local facts = redis.call('HMGET', KEYS[1], 'spinney', 'id')
if facts[1] and facts[2] then
  if facts[1] ~= ARGV[1] then return { 'format', facts[1] } end
  return { 'ok', facts[2] }
end
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'foreign', KEYS[1] } end
if has_some then return { 'foreign', has_some } end
if ARGV[4] ~= 'create' then return { 'absent' } end
redis.call('HSET', KEYS[1], 'spinney', ARGV[1], 'id', ARGV[2], 'run', ARGV[3], 'state', '0', 'changed_len', 0)
return { 'ok', ARGV[2] }
