-- Takes, renews or ends the lock of writers.
-- ARGV: store id, run of the server, client, milliseconds; 0 ends it.
if facts[2] ~= ARGV[2] then return { 'run' } end
local held = redis.call('HMGET', meta, 'locked_by', 'locked_until')
local now = now_ms()
if held[1] and held[1] ~= ARGV[3] and tonumber(held[2]) > now then return { 'held' } end
if ARGV[4] == '0' then
  redis.call('HDEL', meta, 'locked_by', 'locked_until')
else
  redis.call('HSET', meta, 'locked_by', ARGV[3], 'locked_until', string.format('%.0f', now + ARGV[4]))
end
return { 'ok' }
