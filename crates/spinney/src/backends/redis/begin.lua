-- The server has started anew, or is another one than before, so the last states may be lost: the
-- numbers go on far behind any that a client can have seen.
-- ARGV: store id, run of the server.
if facts[2] ~= ARGV[2] then
  local epoch = 4294967296
  local first = (math.floor(state / epoch) + 1) * epoch
  redis.call('DEL', changed)
  unheard(function() redis.call('DEL', leases, ends) end)
  redis.call('HSET', meta, 'run', ARGV[2], 'state', string.format('%.0f', first), 'changed_len', 0)
end
return { 'ok' }
