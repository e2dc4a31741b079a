-- The names of all trees of a store on a cluster.
-- ARGV: format.
local forest, trees = KEYS[1], KEYS[2]
if redis.call('EXISTS', forest) == 0 and redis.call('EXISTS', trees) == 0 then return { 'absent' } end
if redis.call('TYPE', forest).ok ~= 'string' then return { 'foreign', forest } end
local format = redis.call('GET', forest)
if string.sub(format, 1, 8) ~= 'spinney ' then return { 'foreign', forest } end
if string.sub(format, 9) ~= ARGV[1] then return { 'format', string.sub(format, 9) } end
local kind = redis.call('TYPE', trees).ok
if kind ~= 'zset' and kind ~= 'none' then return { 'foreign', trees } end
local names = redis.call('ZRANGE', trees, 0, -1)
table.insert(names, 1, 'ok')
return names
