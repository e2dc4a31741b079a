-- Gives one field a new value: `create` where it is empty, `modify` where it is not, `set` in any case.
local old = redis.call('HGET', KEYS[1], ARGV[1])
if not old then return -1 end
if ARGV[2] == 'create' and old ~= '' then return -2 end
if ARGV[2] == 'modify' and old == '' then return -1 end
if old == ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
