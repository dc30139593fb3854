-- The script of wrk for `benchmarks/serving.py`: it sends the requests of a file in turn. Before each request, the file
-- has its length (4 bytes, little-endian). With "once", it stops after the last request. It prints rates and times as
-- JSON.
local requests, sent, once = {}, 0, false

function init(args)
  local file = io.open(args[1], "rb")
  once = args[2] == "once"
  while true do
    local head = file:read(4)
    if not head then break end
    local a, b, c, d = head:byte(1, 4)
    requests[#requests + 1] = file:read(a + 256 * b + 65536 * c + 16777216 * d)
  end
  file:close()
end

function request()
  if once and sent == #requests then wrk.thread:stop() end
  sent = sent % #requests + 1
  return requests[sent]
end

function done(summary, latency)
  local errors = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format('{"rate": %f, "p50": %f, "p90": %f, "p99": %f, "errors": %d}\n',
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1000, latency:percentile(90) / 1000,
    latency:percentile(99) / 1000, errors))
end
