-- What every script begins with: the keys of the store, and whether it is the one that the client
-- opened. `docs/format.md` says what each key holds.
local meta, keys, values, undo, undone, leases, ends, changed, commits, commits_before = unpack(KEYS)

local function packed(number)
  return struct.pack('>I8', number)
end

local function unpacked(bytes, at)
  return (struct.unpack('>I8', bytes, at))
end

-- What the entries of `undone` about a key begin with; its length keeps those of longer keys apart.
local function about(key)
  return struct.pack('>I2', #key) .. key
end

-- The first entry about a key that replaced something after a state.
local function replaced_after(key, state)
  local from = '[' .. about(key) .. packed(state + 1)
  local to = '[' .. about(key) .. string.rep('\255', 16)
  return redis.call('ZRANGEBYLEX', undone, from, to, 'LIMIT', 0, 1)[1]
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Leases are of this server alone: neither replicas nor the append-only file hear of them.
local function unheard(write)
  redis.set_repl(redis.REPL_NONE)
  write()
  redis.set_repl(redis.REPL_ALL)
end

local facts = redis.call('HMGET', meta, 'id', 'run', 'state')
if facts[1] ~= ARGV[1] then return { 'gone' } end
local state = tonumber(facts[3])
