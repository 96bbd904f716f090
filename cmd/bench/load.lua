-- Sends creates with unique bodies and keys, and prints the results as a line of JSON.
local token = os.getenv("BENCH_TOKEN") or ""
local path = "/api/v3/providers/oauth2/" .. (os.getenv("BENCH_QUERY") or "")
local hasKeys = os.getenv("BENCH_KEYS") ~= "none"
local count = 0
-- Loads of the same database begin in different seconds, and so have different keys.
math.randomseed(os.time())

-- Returns a UUID, because SDKs choose random keys, which cost an index more than ordered ones.
local function uuid()
  local random = math.random
  return string.format("%08x-%04x-4%03x-9%03x-%012x", random(0, 0xffffffff), random(0, 0xffff), random(0, 0xfff),
    random(0, 0xfff), random(0, 0xffffffffffff))
end

function request()
  count = count + 1
  local body = string.format(
    '{"name":"bench %d","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01",' ..
    '"redirect_uris":"https://app%d.example.com/callback","sub_mode":"user_uuid"}', count, count)
  return wrk.format("POST", path, {
    ["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. token,
    ["Idempotency-Key"] = hasKeys and uuid() or nil,
  }, body)
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"p50":%d,"p95":%d,"p99":%d,"refused":%d,"failed":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(95), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
