-- Sends creates with unique bodies, and prints the results as a line of JSON.
local token = os.getenv("BENCH_TOKEN") or ""
local count = 0

function request()
  count = count + 1
  local body = string.format(
    '{"name":"bench %d","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01",' ..
    '"redirect_uris":"https://app%d.example.com/callback","sub_mode":"user_uuid"}', count, count)
  return wrk.format("POST", "/api/v3/providers/oauth2/", {
    ["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. token,
  }, body)
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"p50":%d,"p95":%d,"p99":%d,"refused":%d,"failed":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(95), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
