// A translating gateway as somebody with Node would write it: http in front, undici behind, JSON.parse between.
// Arguments: port, upstream (host:port), client token, access token.
import { createServer } from 'node:http'
import { Pool } from 'undici'

const [port, upstream, clientToken, accessToken] = process.argv.slice(2)
const pool = new Pool(`http://${upstream}`, { connections: 256 })
const grants = new Map([[`Bearer ${clientToken}`, `Bearer ${accessToken}`]])
const json = 'application/json'

const message = (from) => ({
  id: from.id,
  body: from.text,
  is_internal: from.isInternal,
  is_email: from.isEmail,
  sender: from.sender,
  senderType: from.senderType,
  receiver: from.receiver,
  receiverType: from.receiverType,
  file: from.file,
  chat: {
    id: from.chat.id,
    channel: from.chat.channel,
    situation: from.chat.situation,
    department: from.chat.department,
    customer: from.chat.customer,
  },
  send_at: from.sendAt,
  read_at: from.readAt,
  type: from.type,
  channel: from.chat.channel ?? null,
  customer: from.chat.customer ?? null,
  eventType: null,
})

const chat = (from) => ({
  id: from.id,
  agentId: from.agentId,
  secondAgentId: from.secondAgentId,
  contactId: from.contactId,
  departmentId: from.departmentId,
  tabulationId: from.tabulationId,
  siteCustomerId: null,
  messengerId: null,
  queueNumber: from.queueNumber,
  channels: from.channels.map(({ uuid, id, name, type }) => ({ uuid, id, name, type })),
  createdAt: from.createdAt,
  updatedAt: from.updatedAt,
  attendedAt: from.attendedAt,
  closedAt: from.closedAt,
})

const routes = [
  { method: 'GET', path: /^\/v2(\/chats\/\d+)$/, answer: chat },
  { method: 'GET', path: /^\/v2(\/chats\/\d+\/messages)$/, answer: (list) => list.map(message) },
  { method: 'POST', path: /^\/v2(\/chats\/\d+\/messages)$/, request: ({ text, isInternal }) => ({ text, isInternal }) },
]

const read = async (stream) => {
  const pieces = []
  for await (const piece of stream) pieces.push(piece)
  return JSON.parse(Buffer.concat(pieces))
}

const refuse = (response, status, reason) => response.writeHead(status, { 'content-type': json }).end(JSON.stringify({ reason }))

async function serve(request, response) {
  const authorization = grants.get(request.headers['x-authorization'])
  if (!authorization) return refuse(response, 401, 'The access token is missing or not known.')
  const query = request.url.indexOf('?')
  const path = query < 0 ? request.url : request.url.slice(0, query)
  for (const route of routes) {
    const found = route.method === request.method && route.path.exec(path)
    if (!found) continue
    const headers = { authorization, accept: json, 'content-type': json }
    const body = route.request && JSON.stringify(route.request(await read(request)))
    const target = `/v3${found[1]}${query < 0 ? '' : request.url.slice(query)}`
    const answer = await pool.request({ method: request.method, path: target, headers, body })
    const value = await read(answer.body)
    if (answer.statusCode !== 200) return response.writeHead(answer.statusCode, { 'content-type': json }).end(JSON.stringify(value))
    if (!route.answer) return response.writeHead(201, { 'content-length': 0 }).end()
    const out = Buffer.from(JSON.stringify(route.answer(value)))
    return response.writeHead(200, { 'content-type': json, 'content-length': out.length }).end(out)
  }
  refuse(response, 404, 'There is nothing at this address.')
}

createServer((request, response) => {
  serve(request, response).catch(() => refuse(response, 502, 'The service gave an answer that cannot be understood.'))
}).listen(Number(port), '127.0.0.1')
