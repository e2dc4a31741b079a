-- Applies a batch if the state is the one that it was made for, once for each commit id.
-- ARGV: store id, run of the server, client, commit id, state that it was made for or nothing, channel
-- or nothing, how many leases end, these, then the changes: `put` key value, `delete` key, `range` from to.
if facts[2] ~= ARGV[2] then return { 'run' } end
local client, commit, base = ARGV[3], ARGV[4], ARGV[5]
local changes_at = 8 + ARGV[7]
if changes_at > 8 then
  unheard(function()
    for i = 8, changes_at - 1 do
      redis.call('ZREM', leases, ARGV[i])
      redis.call('ZREM', ends, ARGV[i])
    end
  end)
end
local made = redis.call('HGET', commits, commit) or redis.call('HGET', commits_before, commit)
if made then return { 'committed', made } end
local now = now_ms()
local noted = redis.call('HMGET', meta, 'locked_by', 'locked_until', 'commits_since', 'changed_len', 'cursor')
if base ~= '' then
  if noted[1] and noted[1] ~= client and tonumber(noted[2]) > now then return { 'locked' } end
  if base ~= facts[3] then return { 'moved' } end
end

local is_leased = redis.call('EXISTS', leases) == 1
if is_leased then
  unheard(function()
    for _, lease in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', '(' .. now)) do
      redis.call('ZREM', leases, lease)
      redis.call('ZREM', ends, lease)
    end
  end)
end
local last = is_leased and redis.call('ZREVRANGE', leases, 0, 0, 'WITHSCORES')[2]
last = last and tonumber(last)

local next_state = state + 1
local stamp, nothing = packed(next_state), packed(0)
local touched, names, names_len, kept = {}, {}, 0, 0

local function change(key, value)
  if not value and redis.call('HEXISTS', values, key) == 0 then return end
  if not touched[key] then
    touched[key] = true
    names[#names + 1] = about(key)
    names_len = names_len + #key + 2
    local old = last and redis.call('HGET', values, key)
    local since = old and string.sub(old, 1, 8) or nothing
    if last and unpacked(since) <= last then
      local entry = about(key) .. stamp .. since
      redis.call('HSET', undo, entry, old or '')
      redis.call('ZADD', undone, 0, entry)
      kept = kept + 1
    end
  end
  if value then
    if redis.call('HSET', values, key, stamp .. value) == 1 then redis.call('ZADD', keys, 0, key) end
  else
    redis.call('HDEL', values, key)
    if not (last and replaced_after(key, 0)) then redis.call('ZREM', keys, key) end
  end
end

local i = changes_at
while i <= #ARGV do
  local operation = ARGV[i]
  if operation == 'put' then
    change(ARGV[i + 1], ARGV[i + 2])
    i = i + 3
  elseif operation == 'delete' then
    change(ARGV[i + 1])
    i = i + 2
  else
    local from, to = '[' .. ARGV[i + 1], '(' .. ARGV[i + 2]
    repeat
      local found = redis.call('ZRANGEBYLEX', keys, from, to, 'LIMIT', 0, 256)
      for _, key in ipairs(found) do
        change(key)
        from = '(' .. key
      end
    until #found < 256
    i = i + 3
  end
end

-- What no lease needs any more goes, some of it with each commit: more than the commit has added.
if redis.call('EXISTS', undone) == 1 then
  local budget = 32 + 2 * kept
  local from = noted[5] and '(' .. noted[5] or '-'
  local entries = redis.call('ZRANGEBYLEX', undone, from, '+', 'LIMIT', 0, budget)
  for _, entry in ipairs(entries) do
    local key_end = 2 + struct.unpack('>I2', entry)
    local replaced, since = unpacked(entry, key_end + 1), unpacked(entry, key_end + 9)
    if not last or redis.call('ZCOUNT', leases, since, '(' .. string.format('%.0f', replaced)) == 0 then
      redis.call('HDEL', undo, entry)
      redis.call('ZREM', undone, entry)
      local key = string.sub(entry, 3, key_end)
      if redis.call('HEXISTS', values, key) == 0 and not replaced_after(key, 0) then
        redis.call('ZREM', keys, key)
      end
    end
  end
  if #entries == budget then
    redis.call('HSET', meta, 'cursor', entries[#entries])
  elseif noted[5] then
    redis.call('HDEL', meta, 'cursor')
  end
end

-- What the last states changed, by whom they were made.
local item = names_len <= 65536 and table.concat(names) or '*'
local changed_len = tonumber(noted[4]) + #item
local count = redis.call('RPUSH', changed, item)
while changed_len > 1048576 or count > 1024 do
  changed_len = changed_len - #redis.call('LPOP', changed)
  count = count - 1
end
local made = string.format('%.0f', next_state)
if not noted[3] or now - noted[3] > 120000 then
  redis.call('UNLINK', commits_before)
  if redis.call('EXISTS', commits) == 1 then redis.call('RENAME', commits, commits_before) end
  redis.call('HSET', meta, 'commits_since', string.format('%.0f', now))
end
redis.call('HSET', commits, commit, made)
redis.call('HSET', meta, 'state', made, 'changed_len', changed_len)
-- Who may not publish is no worse off than who may not subscribe: others look from time to time.
if base ~= '' then redis.pcall('PUBLISH', ARGV[6], made) end
return { 'committed', made }
