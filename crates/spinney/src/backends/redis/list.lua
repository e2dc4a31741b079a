-- Puts the name of a tree into the catalogue of a store on a cluster, and refuses what is none.
-- ARGV: format, name, whether the catalogue may be made.
local forest, trees = KEYS[1], KEYS[2]
local kinds = { redis.call('TYPE', forest).ok, redis.call('TYPE', trees).ok }
if kinds[1] ~= 'string' and kinds[1] ~= 'none' then return { 'foreign', forest } end
if kinds[2] ~= 'zset' and kinds[2] ~= 'none' then return { 'foreign', trees } end
if kinds[1] == 'none' then
  if kinds[2] ~= 'none' then return { 'foreign', trees } end
  if ARGV[3] ~= 'create' then return { 'absent' } end
  redis.call('SET', forest, 'spinney ' .. ARGV[1])
end
local format = redis.call('GET', forest)
if string.sub(format, 1, 8) ~= 'spinney ' then return { 'foreign', forest } end
if string.sub(format, 9) ~= ARGV[1] then return { 'format', string.sub(format, 9) } end
redis.call('ZADD', trees, 0, ARGV[2])
return { 'ok' }
