-- What a gateway does beside translating, by hand: clients known by the hash of their token, bounds on requests in flight, a
-- counter and a histogram. Bounds and buckets are Switchback's.
local ffi = require "ffi"
local clients, in_flight, metrics = {}, ngx.shared.in_flight, ngx.shared.metrics
local M = {}

local requests_max, requests_per_client_max = 4096, 512
local buckets = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30 }

-- nginx is linked with OpenSSL's library; resty.sha256 calls it in the same way.
ffi.cdef [[ unsigned char *SHA256(const unsigned char *text, size_t length, unsigned char *digest); ]]
local digest = ffi.new("unsigned char[32]")

local function hash(token)
    ffi.C.SHA256(token, #token, digest)
    return ffi.string(digest, 32)
end

function M.enroll(name, token, access_token)
    clients[hash(token)] = { name = name, key = "client " .. name, grant = "Bearer " .. access_token }
end

local function refuse(status, reason)
    ngx.status = status
    ngx.print('{"reason":"' .. reason .. '"}')
    return ngx.exit(status)
end

-- Counted first, so that two requests at one time cannot both take the last place.
function M.enter()
    local token = ngx.var.http_x_authorization
    local client = token and token:sub(1, 7) == "Bearer " and clients[hash(token:sub(8))]
    if not client then return refuse(401, "The access token is missing or not known.") end
    ngx.ctx.client = client
    ngx.var.client = client.name
    ngx.var.grant = client.grant
    local all = in_flight:incr("all", 1, 0)
    local own = in_flight:incr(client.key, 1, 0)
    if all > requests_max then return refuse(503, "There are too many requests at this time.") end
    if own > requests_per_client_max then return refuse(429, "The client has too many requests at this time.") end
end

-- The names under which an operation is counted are made once.
local names = {}
local function names_of(operation)
    local found = names[operation]
    if not found then
        found = { sum = "sum " .. operation, count = {}, bucket = {} }
        for at = 1, #buckets + 1 do found.bucket[at] = "bucket " .. operation .. " " .. (buckets[at] or "+Inf") end
        names[operation] = found
    end
    return found
end

function M.leave()
    local client = ngx.ctx.client
    if client then
        in_flight:incr("all", -1)
        in_flight:incr(client.key, -1)
    end
    local names = names_of(ngx.req.get_method() .. " " .. ngx.var.operation_path)
    local status = ngx.status
    local count = names.count[status]
    if not count then
        count = "requests " .. names.sum:sub(5) .. " " .. status
        names.count[status] = count
    end
    local elapsed = tonumber(ngx.var.request_time) or 0
    local at = 1
    while buckets[at] and elapsed > buckets[at] do at = at + 1 end
    metrics:incr(count, 1, 0)
    metrics:incr(names.bucket[at], 1, 0)
    metrics:incr(names.sum, elapsed, 0)
end

function M.metrics()
    for _, name in ipairs(metrics:get_keys(0)) do ngx.say(name, " ", metrics:get(name)) end
    ngx.say("in_flight ", in_flight:get("all") or 0)
end

return M
