"""The source's protocol: Triton's do_bench as upstream's scripts use it, for upstream's own callable on this host."""
import statistics
import time

WARM_UP_S, FIRST, MOST_SAMPLES, MOST_MS = 0.025, 20, 2000, 50
FLUSH_INTS = 256 << 18  # 256 MB


def source_times(torch, case, kind, budget_ms):
    """256 MB zeroed before each call, events round it, no waiting: median, p20, p80, the host's time to queue one iteration and the
    flush's, in ns. `kind` is the pass; of `budget_ms`, the protocol's, at most 50 are spent. Leaves what the calls spoil spoiled."""
    flush = torch.empty(FLUSH_INTS, dtype=torch.int, device="cuda")
    prebuilt = case.forward() if kind == "backward" else None
    dropped = [case.leaves[name] for name in case.drops]

    def call():
        if kind == "forward":
            case.forward()
        else:
            case.backward(prebuilt if kind == "backward" else case.forward())

    def sample(n):
        events, host = [], []
        for _ in range(n):
            pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            begin = time.perf_counter_ns()
            for leaf in dropped:
                leaf.grad = None
            flush.zero_()
            pair[0].record()
            call()
            pair[1].record()
            host.append(time.perf_counter_ns() - begin)
            events.append(pair)
        torch.cuda.synchronize()
        return [a.elapsed_time(b) * 1e6 for a, b in events], host

    begin, n = time.perf_counter(), 0
    while time.perf_counter() - begin < WARM_UP_S or n < 5:
        call()
        n += 1
    torch.cuda.synchronize()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    marks[0].record()
    for _ in range(5):
        flush.zero_()
    marks[1].record()
    torch.cuda.synchronize()
    flush_ns = marks[0].elapsed_time(marks[1]) * 1e6 / 5
    first, host = sample(FIRST)
    each = max(statistics.median(first) + flush_ns, statistics.median(host))
    times = sorted(first + sample(max(1, min(MOST_SAMPLES, int(min(budget_ms, MOST_MS) * 1e6 / each))))[0])
    at = lambda p: round(times[min(len(times) - 1, int(p * len(times)))])
    return {"median_ns": at(0.5), "p20_ns": at(0.2), "p80_ns": at(0.8), "samples": len(times), "host_ns": round(statistics.median(host)),
            "flush_ns": round(flush_ns)}
