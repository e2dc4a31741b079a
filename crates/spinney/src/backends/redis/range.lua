-- The records of a range of a state, and on demand the first key behind another.
-- ARGV: store id, run of the server or nothing where nothing may be written, state, lease or nothing, its milliseconds or nothing to leave it
-- as it is, direction, bounds as `ZRANGEBYLEX` has them, records and bytes at most, the other key's
-- bound or nothing.
if ARGV[2] ~= '' and facts[2] ~= ARGV[2] then return { 'run' } end
local view, lease, time = tonumber(ARGV[3]), ARGV[4], ARGV[5]
local is_old = view ~= state
if is_old then
  local ending = redis.call('ZSCORE', ends, lease)
  local leased = redis.call('ZSCORE', leases, lease)
  if not ending or tonumber(leased) ~= view or tonumber(ending) < now_ms() then
    return { 'expired' }
  end
end
if lease ~= '' and time ~= '' then
  unheard(function()
    redis.call('ZADD', leases, view, lease)
    redis.call('ZADD', ends, now_ms() + time, lease)
  end)
end

-- The value of a key in the state, or nothing; the second answer is false when it is not there
-- though the lease should have kept it.
local function read(key)
  local value = redis.call('HGET', values, key)
  if not is_old or (value and unpacked(value) <= view) then return value, true end
  local entry = replaced_after(key, view)
  if not entry then return false, not value end
  if unpacked(entry, #key + 11) > view then return false, false end
  value = redis.call('HGET', undo, entry)
  return value and #value > 0 and value, value ~= false
end

local command = ARGV[6]
local from, to = ARGV[7], ARGV[8]
local records_max, bytes_max = tonumber(ARGV[9]), tonumber(ARGV[10])
local reply = { 'ok', 'end', false }
if ARGV[11] ~= '' then
  reply[3] = redis.call('ZRANGEBYLEX', keys, ARGV[11], '+', 'LIMIT', 0, 1)[1] or false
end
local records, bytes, steps = 0, 0, 0
local at_once = math.min(records_max + 1, 64)
while true do
  local names = redis.call(command, keys, from, to, 'LIMIT', 0, at_once)
  for _, name in ipairs(names) do
    local value, is_kept = read(name)
    if not is_kept then return { 'damaged', name } end
    if value then
      if records == records_max or (records > 0 and bytes >= bytes_max) then
        reply[2] = 'more'
        return reply
      end
      records, bytes = records + 1, bytes + #name + #value
      reply[#reply + 1] = name
      reply[#reply + 1] = value
    end
    from = '(' .. name
  end
  if #names < at_once then return reply end
  -- Keys that only older states have cost time and give nothing; others want to be served, too.
  steps = steps + #names
  if steps >= 4096 then
    reply[2] = from
    return reply
  end
end
