-- Puts entries directly after one entry, each `k` with its value, or without one where it is only moved.
local gap = tonumber(ARGV[2])
local count = (#ARGV - 2) / 2

local function text(rank) return string.format('%.0f', rank) end

local function room()
    local rank = redis.call('ZSCORE', KEYS[1], ARGV[1])
    if not rank then return nil end
    rank = tonumber(rank)
    local after = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(rank), '+inf',
        'WITHSCORES', 'LIMIT', 0, 1)
    if not after[1] then return rank, gap end
    return rank, math.floor((tonumber(after[2]) - rank) / (count + 1))
end

local rank, step = room()
if not rank then return -1 end
if step < 1 then
    for at, k in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
        redis.call('ZADD', KEYS[1], text(at * gap), k)
    end
    rank, step = room()
end
for at = 0, count - 1 do
    local k, value = ARGV[3 + 2 * at], ARGV[4 + 2 * at]
    redis.call('ZADD', KEYS[1], text(rank + step * (count - at)), k)
    if value ~= 'moved' then redis.call('HSET', KEYS[2], k, value) end
end
return count
