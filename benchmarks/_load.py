"""A load generator for services: it sends encoded requests through sockets, with one asyncio task for each connection.

    python benchmarks/_load.py PORT SECONDS CONNECTIONS repeat|once < requests

It reads requests from stdin; before each request is its length (4 bytes, little-endian). Each connection sends one
request at a time. The program prints the times of the answers as JSON. It runs in a separate process.
"""

import asyncio
import json
import struct
import sys
import time


async def client(port, requests, until, times, statuses, answers):
    """Send requests over one connection until the time is over or there are no more requests."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    for request in requests:
        start = time.perf_counter()
        if start > until:
            break
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        body = await reader.readexactly(length)
        times.append(time.perf_counter() - start)
        status = head[9:12].decode()
        statuses[status] = statuses.get(status, 0) + 1
        if answers is not None:
            answers.append(json.loads(body).get("event"))
    writer.close()


async def load(port, seconds, connections, requests, repeat):
    """Send requests over several connections, and return times and statuses of all answers."""
    times, statuses, answers = [], {}, None if repeat else []

    def own(number):
        if not repeat:
            return iter(requests[number::connections])
        return (requests[number % len(requests)] for _ in iter(int, 1))

    start = time.perf_counter()
    until = start + seconds
    await asyncio.gather(*(client(port, own(number), until, times, statuses, answers) for number in range(connections)))
    return {
        "seconds": time.perf_counter() - start,
        "times": times,
        "statuses": statuses,
        "events": answers,
    }


def read_requests(stream):
    """Read the requests from a stream."""
    found = []
    while head := stream.read(4):
        found.append(stream.read(struct.unpack("<I", head)[0]))
    return found


if __name__ == "__main__":
    port_, seconds_, connections_, repeat_ = sys.argv[1:]
    sent = read_requests(sys.stdin.buffer)
    print(json.dumps(asyncio.run(load(int(port_), float(seconds_), int(connections_), sent, repeat_ == "repeat"))))
