-- The mapping of messages and chats by hand, as somebody with nginx would write it.
local cjson = require "cjson"
local null = cjson.null
local M = {}

local function pick(from, names)
    local out = {}
    for _, name in ipairs(names) do out[name] = from[name] end
    return out
end

local function shown(value)
    if value == nil then return null end
    return value
end

local message_same = { "id", "senderType", "receiverType", "file", "type", "sender", "receiver" }
local message_chat = { "id", "channel", "situation", "department", "customer" }
local chat_same = { "id", "agentId", "secondAgentId", "contactId", "departmentId", "tabulationId", "queueNumber",
    "createdAt", "updatedAt", "attendedAt", "closedAt" }
local chat_channel = { "uuid", "id", "name", "type" }

local function message(from)
    local out = pick(from, message_same)
    out.body = from.text
    out.is_internal = from.isInternal
    out.is_email = from.isEmail
    out.send_at = from.sendAt
    out.read_at = from.readAt
    out.chat = pick(from.chat, message_chat)
    out.channel = shown(from.chat.channel)
    out.customer = shown(from.chat.customer)
    out.eventType = null
    return out
end

function M.messages(list)
    for at = 1, #list do list[at] = message(list[at]) end
    return list
end

function M.chat(from)
    local out = pick(from, chat_same)
    local channels = {}
    for at = 1, #from.channels do channels[at] = pick(from.channels[at], chat_channel) end
    out.channels = channels
    out.siteCustomerId = null
    out.messengerId = null
    return out
end

function M.authenticate()
    if ngx.var.grant == "" then
        ngx.status = 401
        ngx.print('{"reason":"The access token is missing or not known."}')
        return ngx.exit(401)
    end
end

-- A message to send: its text and whether it is internal.
function M.request()
    if ngx.req.get_method() ~= "POST" then return end
    ngx.req.read_body()
    local ok, body = pcall(cjson.decode, ngx.req.get_body_data() or "")
    if not ok then
        ngx.status = 400
        ngx.print('{"reason":"The body is not valid JSON of the expected form."}')
        return ngx.exit(400)
    end
    ngx.req.set_body_data(cjson.encode(pick(body, { "text", "isInternal" })))
end

function M.head()
    if ngx.req.get_method() == "POST" and ngx.status < 300 then
        ngx.status = 201
        ngx.header.content_length = 0
        ngx.header.content_type = nil
        ngx.ctx.empty = true
    elseif ngx.status == 200 then
        ngx.header.content_length = nil
        ngx.ctx.translated = true
    end
end

-- Holds the answer until it is whole, then translates it.
function M.body(translate)
    local ctx = ngx.ctx
    if ctx.empty then
        ngx.arg[1] = nil
        return
    end
    if not ctx.translated then return end
    local pieces = ctx.pieces
    if not pieces then
        pieces = {}
        ctx.pieces = pieces
    end
    pieces[#pieces + 1] = ngx.arg[1]
    if ngx.arg[2] then
        ngx.arg[1] = cjson.encode(translate(cjson.decode(table.concat(pieces))))
        ctx.pieces = nil
    else
        ngx.arg[1] = nil
    end
end

return M
