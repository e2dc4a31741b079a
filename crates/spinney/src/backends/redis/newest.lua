-- The newest state, what it changed since one that the client knows, and a lease on it.
-- ARGV: store id, run of the server or nothing where nothing may be written, key of the head, state that the client knows or 0, lease or nothing,
-- its milliseconds, leases that end.
if ARGV[2] ~= '' and facts[2] ~= ARGV[2] then return { 'run' } end
local known, lease = tonumber(ARGV[4]), ARGV[5]
if lease ~= '' or #ARGV > 6 then
  unheard(function()
    for i = 7, #ARGV do
      redis.call('ZREM', leases, ARGV[i])
      redis.call('ZREM', ends, ARGV[i])
    end
    if lease ~= '' then
      redis.call('ZADD', leases, state, lease)
      redis.call('ZADD', ends, now_ms() + ARGV[6], lease)
    end
  end)
end
local reply = { 'ok', facts[3], redis.call('HGET', values, ARGV[3]), 'all' }
local behind = state - known
if (known > 0 or behind == 0) and behind >= 0 and behind <= 1024 and behind <= redis.call('LLEN', changed) then
  reply[4] = 'some'
  if behind > 0 then
    for _, names in ipairs(redis.call('LRANGE', changed, -behind, -1)) do
      if names == '*' then
        reply[4] = 'all'
        break
      end
      reply[#reply + 1] = names
    end
  end
end
return reply
